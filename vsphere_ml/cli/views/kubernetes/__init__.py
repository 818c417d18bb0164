"""Views of manifests and what is wrong with them."""
