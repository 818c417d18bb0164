"""Step kinds. Each is a frozen dataclass: its fields are what a playbook may set, its probes cannot write."""
