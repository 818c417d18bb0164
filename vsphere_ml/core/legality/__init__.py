"""Which combinations of GPU, NIC, VM and ESXi are legal: a table of rules, each data with its predicates."""
