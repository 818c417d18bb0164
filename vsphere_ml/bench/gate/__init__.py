"""Whether a benchmark is good enough to go on: limits, baselines, and what CI servers read of it."""
