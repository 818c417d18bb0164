"""GPU training clusters on vSphere from one file, each part proven."""

__version__ = "0.1.0"
