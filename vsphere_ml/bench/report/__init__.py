"""A record as Markdown, as one HTML file with its plots, and as CSV."""
