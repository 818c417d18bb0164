"""One rank of a job: tells where it runs, then becomes the program it was given.

Runs in guests with the interpreter there (Python 3.8 and newer) and imports nothing but the standard library. Its
report is a line of JSON in FOLDER/rank-N.jsonl; the program finds that file's name in VSML_BENCH_FILE and may add to
it.

    rank.py --folder FOLDER --interface eth0 -- /opt/vsml/runtime/bin/python train.py --model small
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import time
from pathlib import Path

# Who started us: horovodrun over Gloo, Open MPI, MPICH and its relatives.
RANK = ("HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
SIZE = ("HOROVOD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
LOCAL_RANK = ("HOROVOD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--folder", required=True, help="where rank-N.jsonl is written")
    parser.add_argument("--interface", default="", help="the interface that ranks talk over")
    parser.add_argument("program", nargs="+", help="the program and its arguments")
    given = parser.parse_args()
    rank = number(RANK)
    file = str(Path(given.folder) / f"rank-{rank}.jsonl")
    with open(file, "a", encoding="utf-8") as lines:  # noqa: PTH123 - as short as this script can be
        lines.write(json.dumps(report(rank, given.interface)) + "\n")
    os.environ["VSML_BENCH_FILE"] = file
    os.execvp(given.program[0], given.program)  # noqa: S606 - that is what it is for


def report(rank: int, interface: str) -> dict[str, object]:
    return {
        "schema": "vsml.bench.rank/1",
        "kind": "place",
        "rank": rank,
        "size": number(SIZE, 1),
        "local_rank": number(LOCAL_RANK),
        "hostname": socket.gethostname(),
        "boot_id": read("/proc/sys/kernel/random/boot_id"),
        "pid": os.getpid(),
        "cpus": len(os.sched_getaffinity(0)),
        "interface": adapter(interface) if interface else None,
        "gpus": gpus(),
        "time_s": time.time(),
    }


def number(names: tuple[str, ...], default: int = 0) -> int:
    return next((int(os.environ[name]) for name in names if name in os.environ), default)


def adapter(name: str) -> dict[str, object]:
    """What the kernel says of the adapter; a virtual one has no PCI address."""
    folder = Path("/sys/class/net") / name
    device = folder / "device"
    return {
        "name": name,
        "mac": read(folder / "address"),
        "mtu": int(read(folder / "mtu") or 0),
        "driver": (device / "driver").resolve().name if (device / "driver").exists() else "",
        "pci": device.resolve().name if device.exists() else "",
    }


def gpus() -> list[dict[str, str]]:
    """The GPUs that the driver lists, whether or not this rank uses one."""
    try:
        told = subprocess.run(
            ["nvidia-smi", "--query-gpu=uuid,name", "--format=csv,noheader"],  # noqa: S607 - the guest's own PATH
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    pairs = (line.partition(",") for line in told.splitlines() if line.strip())
    return [{"uuid": uuid.strip(), "name": name.strip()} for uuid, _, name in pairs]


def read(path: object) -> str:
    try:
        return Path(str(path)).read_text(encoding="utf-8").strip()
    except OSError:
        return ""


if __name__ == "__main__":
    main()
