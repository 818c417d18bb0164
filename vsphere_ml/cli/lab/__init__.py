"""Commands of the lab vCenter, and the cluster on it that the selftest uses."""
