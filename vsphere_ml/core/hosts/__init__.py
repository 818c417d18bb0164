"""What to do to ESXi hosts before nodes can run there: settings seen, settings wanted, the steps between.

Apart from VMs' plans, since a host's change may cost a reboot and other people's VMs.
"""
