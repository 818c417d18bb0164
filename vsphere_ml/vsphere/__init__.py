"""The edge to vCenter, and the only home of pyVmomi. No managed object leaves this package."""
