"""What a benchmark measured, what it means, and what the wire allows. Knows nothing of guests and starts nothing."""
