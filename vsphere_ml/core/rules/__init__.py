"""The compatibility table: which combinations of GPU, NIC, VM and ESXi their vendors allow.

A rule is a row with its source beside its predicate, because a refusal without its document helps nobody.
"""
