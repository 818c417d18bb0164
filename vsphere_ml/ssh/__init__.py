"""Guests over SSH: verified host keys, one round trip for many questions, and nothing secret on a command line."""

import sys

# paramiko imports it for `Match exec` of an ssh_config, which nobody here reads: half the time that its import takes.
sys.modules.setdefault("invoke", None)  # type: ignore[arg-type]
