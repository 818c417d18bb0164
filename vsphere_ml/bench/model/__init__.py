"""One launch as values: what is asked, what ranks said, what is recorded.

The rest of the benchmark reads and writes these.
"""
