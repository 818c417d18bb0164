"""What is asked of a guest, how its answer is read, and what a finished node must show."""
