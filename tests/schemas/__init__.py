"""The JSON Schemas in docs/reference, made from the types that are written and read.

To renew them: `python -m tests.schemas`.
"""
