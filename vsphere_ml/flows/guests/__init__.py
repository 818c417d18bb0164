"""From VMs to configured guests: waiting for them, playbooks, commands, verification."""
