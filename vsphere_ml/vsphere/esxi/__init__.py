"""One ESXi host at a time: its state read, its settings written over the vSphere API and read back."""
