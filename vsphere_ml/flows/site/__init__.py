"""Flows about a site as a whole, and about no cluster of it."""
