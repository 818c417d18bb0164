"""Vendors' tables: boards, vGPU profiles, versions.

They hold whatever the site, so a new board or release is a row here, with its source, and no code elsewhere.
"""
