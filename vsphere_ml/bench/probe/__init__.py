"""What guests have for a benchmark and what their links carry, asked by each vendor's own tool.

A launch that cannot succeed is refused before it begins.
"""
