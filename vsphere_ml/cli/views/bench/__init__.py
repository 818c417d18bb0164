"""Benchmarks on the terminal."""
