"""Jinja2 in a sandbox: templates come from other people, so they reach nothing and cannot grow without end."""
