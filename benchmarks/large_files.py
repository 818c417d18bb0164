"""What large files cost: CPU time of `vsml check` on 8,000 nodes, and memory of commands that read 256 MiB.

    make bench-large-files

Each row is a whole command, from the start of Python to its end, and is held against a limit. CPU time is the
smallest of five: what other processes do to caches only adds to it.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

NODES = 8000
ROUNDS = 5
LIMIT_S = 2.0
LARGE = 256 << 20  # bytes
LIMIT_MIB = 512
HEAD = """\
[cluster]
name = "big"
[source]
template = "ubuntu"
[defaults]
cpus = 16
memory = "64GiB"
gpu = { profile = "A100-40C" }
network = { port_group = "vm" }
"""
TABLE = (Path(__file__).parents[1] / "tests" / "cases" / "imports" / "nccl-tests.txt").read_bytes()
IMPORT = ("bench", "import", "--nodes", "2", "--link-gbit", "100", "--results", "record")


def one_block() -> str:
    return f'{HEAD}[[nodes]]\nname = "n[0000-{NODES - 1}]"\n'


def blocks(more: Callable[[int], str]) -> str:
    return HEAD + "".join(f'[[nodes]]\nname = "n{at:04}"\n{more(at)}\n' for at in range(NODES))


def address(at: int) -> str:
    return f'network = {{ address = "10.{at >> 14}.{(at >> 7) & 127}.{(at & 127) + 1}/8" }}'


FORMS = {
    "one block": one_block,
    "8,000 blocks alike": lambda: blocks(lambda _: 'cpus = 8\nmemory = "32GiB"'),
    "8,000 blocks, an address each": lambda: blocks(address),
    "8,000 blocks, all unlike": lambda: blocks(lambda at: f'cpus = {8 + at % 100}\nmemory = "{32 + at // 100}GiB"'),
}


class Reader(NamedTuple):
    """A command, and a file for it: `often` is repeated between two ends until the file is as large as it gets."""

    name: str
    arguments: Sequence[str]
    first: bytes
    often: bytes
    last: bytes = b""


READERS = (
    Reader("NCCL's log and a table", IMPORT, b"", b"n1:1:1 [0] NCCL INFO Channel 00/02 : 0 1\n", TABLE),
    Reader("words and a table", IMPORT, b"", b"epoch 1, and words that no reader knows of\n", TABLE),
    Reader("a log of one line", IMPORT, b"", b"x"),
    Reader("`-J` of lists", IMPORT, b"[", b"[],", b"[]]"),
    Reader("`-J` of numbers", IMPORT, b"[", b"1,", b"1]"),
    Reader("a record", ("bench", "report"), b"[", b"[],", b"[]]"),
    Reader("a saved plan", ("provision", "cluster.toml", "--plan"), b'{"x":[', b"{},", b"{}]}"),
    Reader("a cluster file", ("check",), HEAD.encode(), b"# n\n"),
    Reader("a topology", ("lab", "up"), b"", b"a = 1\n"),
    Reader("a file of vhpc-toolkit", ("import", "vhpc"), b"[BASE]\n", b"vm = n\n"),
    Reader("a training script", ("bench", "check"), b"", b"a = 1\n"),
    Reader("an MPIJob", ("k8s", "lint"), b"", b"a: 1\n"),
)


def main() -> int:
    print(
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {platform.platform()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}"
    )
    with tempfile.TemporaryDirectory() as folder:
        fast = [check(name, form(), Path(folder)) for name, form in FORMS.items()]
        small = [read(reader, Path(folder)) for reader in READERS]
    return 0 if all(fast) and all(small) else 1


def check(name: str, text: str, folder: Path) -> bool:
    """Print the CPU time of `vsml check` on a file; whether it is within the limit."""
    (folder / "cluster.toml").write_text(text, encoding="utf-8")
    least = min(run(("check", "cluster.toml"), folder, {0})[0] for _ in range(ROUNDS))
    print(f"check of {NODES:,} nodes, {name:30} {least:5.2f} s of CPU, limit {LIMIT_S:.1f} s")
    return least <= LIMIT_S


def read(reader: Reader, folder: Path) -> bool:
    """Print the largest memory of a command that reads a file of 256 MiB; whether it is within the limit."""
    chunk = reader.often * ((1 << 20) // len(reader.often))
    with (folder / "large").open("wb") as out:
        out.write(reader.first)
        while out.tell() + len(chunk) + len(reader.last) <= LARGE:
            out.write(chunk)
        out.write(reader.last)
    seconds, mib, status = run((*reader.arguments, "./large"), folder, {0, 1, 2})
    answer = "refused" if status else "read"
    print(f"{reader.name:26} {mib:4} MiB, limit {LIMIT_MIB} MiB; {seconds:6.1f} s of CPU; {answer}", flush=True)
    return mib <= LIMIT_MIB


def run(arguments: Sequence[str], folder: Path, statuses: set[int]) -> tuple[float, int, int]:
    """Return seconds of CPU, MiB of memory at most and the exit status of a command."""
    command = (sys.executable, "-m", "vsphere_ml", *arguments)
    with (folder / "told").open("wb") as told:
        process = subprocess.Popen(command, cwd=folder, stdout=told, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    text = (folder / "told").read_text(encoding="utf-8", errors="replace")
    if process.returncode not in statuses or "this is a bug of vsml" in text:
        raise SystemExit(f"{' '.join(arguments)}: exit status {process.returncode}\n{text[-1000:]}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss >> 10, process.returncode


if __name__ == "__main__":
    sys.exit(main())
