"""From candidates to a placement of all nodes.

Greedy comes first since it is quick and mostly right; the exact search proves infeasibility before anybody is
asked to buy hardware.
"""
