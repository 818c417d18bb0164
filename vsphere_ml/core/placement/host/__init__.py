"""What one host can still give.

GPUs, device groups, NUMA nodes. Its free capacity is the one value that changes while nodes are placed, which keeps
the search cheap.
"""
