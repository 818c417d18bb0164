"""Steps for where ranks run: the runtime or its container, and SSH between nodes."""
