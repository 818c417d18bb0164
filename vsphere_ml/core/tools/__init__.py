"""Vendors' programs: their options, and what their answers mean.

Words in, values out: the edges run them, so each can be tested on what a vendor printed.
"""
