"""What is known of a running lab, from the files it keeps. Starts and stops nothing."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import ConfigError, NotPossible
from vsphere_ml.core.hints import CommandLine
from vsphere_ml.lab import folders
from vsphere_ml.lab.guests.boot import power_hook
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT = "default"
TOPOLOGIES = Path(__file__).parent / "topologies"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,40}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lab:
    """A lab that runs: where it answers and who may sign in. The password stays in its file."""

    name: str
    url: str
    address: str
    username: str
    ca_file: Path
    password_file: Path
    pid: int
    topology: str
    api_version: str
    control: str
    has_guests: bool

    def password(self) -> str:
        """Return the password, read from its file now."""
        return self.password_file.read_text().strip()


def folder(name: str) -> Path:
    """Return the folder of the lab called `name`; ConfigError for a name that cannot be one."""
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"`{name}` cannot be the name of a lab",
            code="lab.bad-name",
            target=name,
            hint="use letters, digits, dots and dashes, such as `default`",
        )
    return folders.state(name)


def find(name: str = DEFAULT) -> Lab | None:
    """Return the running lab called `name`, or None; what a dead one left behind is not a lab."""
    home = folder(name)
    try:
        found = json.loads((home / "server.json").read_text())
        lab = _lab(name, home, found)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return lab if runs(lab.pid, home) else None


def running_lab(name: str = DEFAULT) -> Lab:
    """Return the running lab called `name`; NotPossible `lab.not-running` when it does not run."""
    if (lab := find(name)) is not None:
        return lab
    option = "" if name == DEFAULT else f" --name {name}"
    raise NotPossible(
        f"the lab vCenter `{name}` does not run",
        code="lab.not-running",
        target=name,
        hint=CommandLine(f"vsml lab up{option}"),
    )


def names() -> list[str]:
    """Return the names of all labs that left a folder, running or not."""
    parent = folders.state(DEFAULT).parent
    return sorted(home.name for home in parent.iterdir() if home.is_dir()) if parent.is_dir() else []


def runs(pid: int, home: Path) -> bool:
    """Return whether `pid` is the lab of this folder; by its arguments, so a reused id is not mistaken for it."""
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"serve" in arguments and os.fsencode(home) in arguments


def _lab(name: str, home: Path, answers: Mapping[str, object]) -> Lab:
    return Lab(
        name=name,
        url=str(answers["url"]),
        address=str(answers["address"]),
        username=str(answers["username"]),
        ca_file=Path(str(answers["ca_file"])),
        password_file=home / "password",
        pid=int(str(answers["pid"])),
        topology=str(answers.get("topology", "")),
        api_version=str(answers.get("api_version", "")),
        control=str(answers.get("control", "")),
        has_guests=power_hook.path(home).exists(),
    )
