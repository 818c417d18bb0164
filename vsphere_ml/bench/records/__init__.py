"""Records on disk.

Strict JSON, one document a launch, written whole or not at all, so that a cut run is resumed and a figure is never
read from half a file.
"""
