"""Guests: playbooks, the steps they are made of, and how they are applied."""
