"""Views of what happens and what is found in guests."""
