"""The API server, by lightkube: the one home of that library."""
