"""The one place that knows flows and edges both: it connects, and hands ports to flows."""
