"""What is wanted and what is seen, as values: the cluster file's spec, a site's inventory, a node's placement.

Everything else in the core decides about these, so they import nothing of it but its errors and units.
"""
