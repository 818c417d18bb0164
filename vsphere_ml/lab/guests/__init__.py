"""Linux guests behind the lab's VMs: real sshd, real apt, no hardware. Knows nothing of vCenter but its power hook."""
