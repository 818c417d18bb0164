"""Commands about jobs on Kubernetes. One file a command."""
