"""Changes of ESXi hosts, one host after another, each back in service whatever happened."""
