"""The tables of a cluster file, one module each, from checked keys to the spec's values."""
