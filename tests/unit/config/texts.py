"""The least a cluster file must have, for tests that add to it."""

from __future__ import annotations

CLUSTER = """\
[cluster]
name = "train"

[source]
template = "ubuntu"
"""

DEFAULTS = """
[defaults]
cpus = 8
memory = "16GiB"
gpu = { profile = "A100-40C" }
network = { port_group = "vm-mgmt" }
"""

ONE_NODE = CLUSTER + DEFAULTS + '\n[[nodes]]\nname = "node-1"\n'
