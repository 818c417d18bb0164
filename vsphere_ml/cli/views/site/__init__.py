"""Views of hosts and what they offer."""
