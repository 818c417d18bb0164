"""What happens when a lab guest is powered on.

The hook of the lab vCenter, then first-boot data as cloud-init takes it.
"""
