"""How soon 64 lab guests stand, and what disk and memory they take beside the image that they share.

    make bench-boots

One `vsml provision` makes 64 VMs on a lab where a clone takes two seconds and a power-on one; then `vsml run -- true`
is asked of all of them until each has answered. Tell it beside the time of the same provision without guests.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.provision import VSML, machine, running, vsml
from vsphere_ml.lab.guests import needs
from vsphere_ml.ssh.keys.key_pairs import key_pair

if TYPE_CHECKING:
    from vsphere_ml.lab.state import Lab

HERE = Path(__file__).parent
EXIT_TIMEOUT_S = 300.0
GUEST_TABLE = """
[guest]
key_file = "{key}"
playbooks = []
"""
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Boots:
    """What 64 guests took: seconds of the provision and until all had answered, bytes of disk and memory."""

    provision_s: float
    answer_s: float
    disk: int
    memory: int


def main() -> int:
    if missing := needs.missing_need():
        print(f"cannot run: {missing}", file=sys.stderr)
        return 1
    print(machine())
    with running("sixteen.toml"):
        bare = provision(HERE / "sixteen-cluster.toml")
    print(f"64 VMs without guests: provision {bare:.1f} s")
    with tempfile.TemporaryDirectory() as folder, running("sixteen.toml", guests=True) as lab:
        boots = measure(Path(folder), lab)
    print(
        f"64 VMs with guests: provision {boots.provision_s:.1f} s, all guests answer {boots.answer_s:.1f} s after it; "
        f"{boots.disk / MIB:.0f} MiB of disk and {boots.memory / MIB:.0f} MiB of memory beside the image"
    )
    return 0


def measure(folder: Path, lab: Lab) -> Boots:
    pair = key_pair(folder / "key", "bench")
    file = folder / "cluster.toml"
    file.write_text((HERE / "sixteen-cluster.toml").read_text() + GUEST_TABLE.format(key=pair.private))
    state = lab.password_file.parent
    disk, memory = used(state), available()
    provision_s = provision(file)
    began = time.monotonic()
    wait_for_answers(file)
    answer_s = time.monotonic() - began
    return Boots(provision_s, answer_s, used(state) - disk, memory - available())


def provision(file: Path) -> float:
    began = time.monotonic()
    vsml("provision", str(file), "--yes", "--parallel", "64")
    return time.monotonic() - began


def wait_for_answers(file: Path) -> None:
    deadline = time.monotonic() + EXIT_TIMEOUT_S
    while (
        asked := subprocess.run([VSML, "run", "-f", str(file), "--", "true"], capture_output=True, check=False)
    ).returncode:
        if time.monotonic() > deadline:
            raise SystemExit(f"not every guest answers:\n{asked.stdout.decode()}\n{asked.stderr.decode()}")


def used(folder: Path) -> int:
    """Return the bytes of disk that a folder takes."""
    return sum(each.lstat().st_blocks * 512 for each in folder.rglob("*"))


def available() -> int:
    """Return the bytes of memory that the machine could still give."""
    [line] = [each for each in Path("/proc/meminfo").read_text().splitlines() if each.startswith("MemAvailable:")]
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    sys.exit(main())
