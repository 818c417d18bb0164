"""What could go onto one host, and why not.

Every candidate is made from the host's free capacity alone, so that greedy and exact search weigh the same ones.
"""
