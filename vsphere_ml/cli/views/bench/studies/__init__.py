"""Studies on the terminal."""
