"""A cluster file as what a Supervisor and its Kubernetes cluster need: VM classes, the cluster, operators, a first job.

Nodes, GPUs, NICs and the VMs' advanced settings come from the file, by the code that `provision` uses. What the file
does not have comes from options, or is named as missing; none of it is invented. No document has a secret in it.
"""
