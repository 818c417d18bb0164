"""One file a command: its whole story as a dozen calls on ports. Knows no edge."""
