"""A stand-in for the lab's program: a script that keeps the contract of starting and stopping, and serves nothing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """
import json, os, signal, sys, time
options = dict(zip(sys.argv[2::2], sys.argv[3::2]))
state = options["--state"]
def end(*_):
    os.unlink(state + "/server.json")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
told = {
    "schema": 1, "url": "https://localhost:1/sdk", "address": "localhost:1", "username": "administrator@vsphere.local",
    "ca_file": state + "/ca.pem", "pid": os.getpid(), "topology": options["--topology"], "api_version": "8.0.3.0",
    "control": "https://localhost:1/lab",
}
with open(state + "/part", "w") as file:
    json.dump(told, file)
os.rename(state + "/part", state + "/server.json")
while True:
    time.sleep(1)
"""
STUBBORN = GOOD.replace("signal.signal(signal.SIGTERM, end)", "signal.signal(signal.SIGTERM, signal.SIG_IGN)")
REFUSING = """
import sys
print("topology.toml:3: unknown key `hots`", file=sys.stderr)
sys.exit(2)
"""
CRASHING = """
import sys
print("panic: out of memory", file=sys.stderr)
sys.exit(3)
"""


def program(folder: Path, text: str) -> Path:
    """Return an executable that runs this Python text."""
    path = folder / "vsml-lab-vcenter"
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)
    return path
