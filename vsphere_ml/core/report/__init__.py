"""What is made of an inventory for people and other programs: capacity, NCCL's topology, inventories of other tools.

Nothing decides by it.
"""
