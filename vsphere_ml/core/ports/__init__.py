"""The protocols between flows and edges, and the events that flows report.

Flows know these alone, so that every flow runs in tests against a site in memory.
"""
