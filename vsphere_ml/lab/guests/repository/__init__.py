"""What lab guests install: stand-ins for drivers and wheels, in an apt repository and on datastores."""
