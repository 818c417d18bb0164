"""Steps for NVIDIA's driver and what depends on it."""
