"""The program that the lab vCenter runs when a VM's power changes."""

from __future__ import annotations

import sys
from pathlib import Path
from shlex import quote

GUESTS = "guests"  # below the lab's folder
_ROOT = Path(__file__).parents[4]


def path(home: Path) -> Path:
    """Return where the program lies in the lab's folder."""
    return home / "power-hook"


def write(home: Path) -> Path:
    """Write the program into the lab's folder and return its path."""
    program = path(home)
    run = f"exec {quote(sys.executable)} -m vsphere_ml.lab.guests {quote(str(home / GUESTS))}"
    program.write_text(f"#!/bin/sh\nexport PYTHONPATH={quote(str(_ROOT))} PYTHONDONTWRITEBYTECODE=1\n{run}\n")
    program.chmod(0o700)
    return program
