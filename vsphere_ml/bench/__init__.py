"""What a benchmark measured, what it means, and what the wire allows.

It enters guests only by the shells that flows hand it, and knows nothing of how these are opened.
"""
