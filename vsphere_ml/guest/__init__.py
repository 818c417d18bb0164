"""Guests: playbooks, the steps they are made of, and the way a guest is brought to them."""
