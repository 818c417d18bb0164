"""From a TOML file to steps, every mistake at once. No loops and no conditions: a playbook can be read aloud."""
