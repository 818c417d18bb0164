"""Benchmarks across the nodes' guests: prepare, launch, watch, record."""
