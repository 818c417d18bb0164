"""What a network allows before anything runs: headers, the time of an all-reduce, bounds of the efficiency.

Measured figures are held against these.
"""
