"""Studies from the command line."""
