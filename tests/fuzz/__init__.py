"""Fuzzers: each module's `run(seconds, seed)` tries inputs, returns how many, and raises at one without an answer."""

TARGETS = ("clusters", "playbooks", "vhpc", "topologies", "importers", "guests")
