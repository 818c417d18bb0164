"""One guest over SSH: signing in, asking in one round trip, telling, and what went wrong in words."""
