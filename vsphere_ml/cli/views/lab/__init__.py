"""Views of the lab vCenter."""
