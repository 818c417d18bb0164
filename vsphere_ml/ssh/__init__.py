"""Guests over SSH: verified host keys, one round trip for many questions, and nothing secret on a command line."""
