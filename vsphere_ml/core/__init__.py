"""The pure core: values and decisions. Imports the standard library only; no I/O, no clock."""
