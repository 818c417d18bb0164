"""What a person sees while something runs: a moving table on a terminal, a line an event elsewhere."""
