"""What to do to a site, as a value that can be shown, saved and compared.

Changes are a closed union, so that no executor and no view can forget one.
"""
