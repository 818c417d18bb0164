"""Whether a launch was what it was meant to be.

Ranks in their places, equal weights, bytes on the links that were asked for. A figure without it is not recorded as
good.
"""
