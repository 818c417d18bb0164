"""What a node asks of its host and gets at its first boot.

Apart from the spec, because here profiles and boards are looked up: equal requirements make nodes alike to the
placement.
"""
