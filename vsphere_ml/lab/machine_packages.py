"""What the machine must have for the lab, by Debian's package: read from `packages.txt`, which the scripts read too."""

from __future__ import annotations

import os
import shutil
from functools import cache
from pathlib import Path

from vsphere_ml.lazy_dataclass import dataclass

LIST = Path(__file__).with_name("packages.txt")
SEARCH = f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin"


@dataclass(frozen=True, slots=True)
class PackageNeed:
    """A program, or a file by an absolute pattern, what it is for, and the package it comes with."""

    purpose: str
    path: str
    package: str

    def is_met(self) -> bool:
        if self.path.startswith("/"):
            return any(Path("/").glob(self.path.lstrip("/")))
        return shutil.which(self.path, path=SEARCH) is not None


@cache
def all_needs() -> tuple[PackageNeed, ...]:
    """Return the whole list, in its order."""
    lines = (line.partition("#")[0].split() for line in LIST.read_text().splitlines())
    return tuple(PackageNeed(*words) for words in lines if words)


def missing_packages(*purposes: str) -> list[str]:
    """Return the packages that this machine needs for these purposes and does not have, sorted."""
    return sorted({need.package for need in all_needs() if need.purpose in purposes and not need.is_met()})


def install_command(packages: list[str]) -> str:
    """Return what to type, as root, to have these packages."""
    return f"apt-get install -y {' '.join(packages)}"
