"""What only a machine with an NVIDIA GPU can show: `make test-gpu`, with a Python that has PyTorch."""
