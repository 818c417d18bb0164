"""Views of a cluster: its file, its plan, its state."""
