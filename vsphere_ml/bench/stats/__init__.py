"""Figures with their uncertainty, from samples alone.

It knows nothing of launches, so each formula stands beside its source and is tested on series whose answer is known.
"""
