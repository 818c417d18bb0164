"""`vsml bench regimes`: training regimes side by side."""
