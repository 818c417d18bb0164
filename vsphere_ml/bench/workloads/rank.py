"""One rank of a job: prints where it runs, starts the program it was given, and prints what that talked to.

Runs in guests with the interpreter there (Python 3.9 and newer) and imports nothing but the standard library. Its
reports are lines of JSON in FOLDER/rank-N.jsonl; the program finds that file's name in VSML_BENCH_FILE and may add to
it.

    rank.py --folder FOLDER --interface eth0 -- /opt/vsml/runtime/bin/python train.py --model small
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import BinaryIO

# Who started us: horovodrun over Gloo, Open MPI, MPICH and its relatives, torchrun.
RANK = ("HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "RANK")
SIZE = ("HOROVOD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "WORLD_SIZE")
LOCAL_RANK = ("HOROVOD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "LOCAL_RANK")
SOON_S, SOON = 0.2, 10  # at first, until sockets were seen in so many looks
POLL_S = 2.0  # between two looks at the program's sockets
ESTABLISHED = "01"
CLOCKS_S = 10.0  # between two looks at the GPUs' clocks: asking takes the driver some milliseconds
CLOCKS = {
    "uuid": "uuid",
    "sm": "clocks.sm",
    "memory": "clocks.mem",
    "throttle": "clocks_throttle_reasons.active",
    "ecc": "ecc.mode.current",
}
NOT_FOUND = 127  # as shells say that there is no such program
PIPE_S = 5.0  # for the last lines, which a process that was left may keep from ending
CHUNK = 1 << 16
WORD = 4  # bytes: InfiniBand's port counters count words


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--folder", required=True, help="where rank-N.jsonl is written")
    parser.add_argument("--interface", default="", help="the interface that ranks talk over")
    parser.add_argument("--work-folder", help="where the program is started; each line it prints gets its rank")
    parser.add_argument("program", nargs="+", help="the program and its arguments")
    given = parser.parse_args()
    rank = number(RANK)
    file = Path(given.folder) / f"rank-{rank}.jsonl"
    report(file, place(rank, given.interface))
    before, prioritized, began = sent_by_device(), sent_by_priority(), cpu_counters()
    # MPICH's launcher talks to the program by a descriptor that PMI_FD names: it must stay open.
    env = {**of_node(Path(given.folder)), **os.environ, "VSML_BENCH_FILE": str(file)}
    how = {"cwd": given.work_folder, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} if given.work_folder else {}
    try:
        program = subprocess.Popen(given.program, env=env, close_fds=False, **how)  # noqa: S603 - that is what it is for
    except OSError as error:
        sys.stderr.write(f"[{rank}] {given.program[0]}: {error.strerror}\n")
        return NOT_FOUND
    threads = pass_on_lines(program, f"[{rank}] ".encode()) if given.work_folder else []
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, lambda number, _frame: program.send_signal(number))
    seen = watch_program(program, file if number(LOCAL_RANK) == 0 else None)
    for thread in threads:
        thread.join(PIPE_S)
    if number(LOCAL_RANK) == 0:
        report(file, {"kind": "contention", **contention(began, cpu_counters())})
        report(file, {"kind": "priorities", "ports": priority_differences(prioritized, sent_by_priority())})
    report(file, {"kind": "traffic", "bytes": differences(before, sent_by_device()), "peers": peers(seen)})
    return end_like(program.returncode)


def of_node(folder: Path) -> dict[str, str]:
    """The variables in which nodes differ, such as the names of their adapters."""
    file = folder / "node.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def pass_on_lines(program: subprocess.Popen[bytes], prefix: bytes) -> list[threading.Thread]:
    """Pass on what the program prints, each line with this before it."""
    pairs = ((program.stdout, 1), (program.stderr, 2))
    threads = [threading.Thread(target=pass_on, args=(source, to, prefix), daemon=True) for source, to in pairs]
    for each in threads:
        each.start()
    return threads


def pass_on(source: BinaryIO, to: int, prefix: bytes) -> None:
    """Write whole lines as soon as they are there. What progress bars write over is a line each time."""
    rest = last = b""
    while True:
        data = os.read(source.fileno(), CHUNK)
        new = data[1:] if last == b"\r" and data.startswith(b"\n") else data
        *ended, rest = re.split(rb"\r?\n|\r", rest + new)
        if not data and rest:
            ended.append(rest)
        text = b"".join(prefix + line + b"\n" for line in ended)
        while text:
            text = text[os.write(to, text) :]
        if not data:
            return
        last = data[-1:]


def end_like(status: int) -> int:
    """Return the program's exit status; end by the signal that ended the program, if one did.

    MPICH 5.0.2's mpirun ends the other ranks when one dies of a signal, and waits for them when it exits with 137.
    """
    if status < 0:
        if -status != signal.SIGKILL:  # which nobody may set
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status if status >= 0 else 128 - status


def report(file: Path, line: dict[str, object]) -> None:
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(line) + "\n")


def place(rank: int, interface: str) -> dict[str, object]:
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
    return query_driver({"uuid": "uuid", "name": "name"})


def clocks() -> list[dict[str, str]]:
    """What the driver says of the GPUs' clocks now; a field it does not know makes it say nothing."""
    without = {name: field for name, field in CLOCKS.items() if name != "throttle"}
    return (
        query_driver(CLOCKS)
        or query_driver({**CLOCKS, "throttle": "clocks_event_reasons.active"})
        or query_driver(without)
    )


def query_driver(fields: dict[str, str]) -> list[dict[str, str]]:
    """Return a row a GPU, by our own names of the driver's fields; nothing where there is no driver."""
    text = query_program("nvidia-smi", f"--query-gpu={','.join(fields.values())}", "--format=csv,noheader")
    rows = ([cell.strip() for cell in line.split(",", len(fields) - 1)] for line in text.splitlines() if line.strip())
    return [dict(zip(fields, row)) for row in rows]  # noqa: B905 - `strict` is not in Python 3.9


def watch_program(program: subprocess.Popen[bytes], file: Path | None) -> dict[tuple[str, str], int]:
    """Wait for the program's end; return the most sockets it had at a time between each two addresses.

    With `file`, the clocks of the node's GPUs are written there now and then.
    """
    most: dict[tuple[str, str], int] = {}
    due = time.monotonic() + CLOCKS_S / 2 if file else float("inf")
    # A short job talks for less than a second; once its sockets were seen often enough, it is left alone for longer.
    soon = SOON if number(SIZE, 1) > 1 else 0
    while True:
        for pair, count in sockets(program.pid).items():
            most[pair] = max(count, most.get(pair, 0))
        soon -= bool(most) and soon > 0
        if file and time.monotonic() >= due:
            rows = clocks()
            report(file, {"kind": "clocks", "gpus": rows})
            due = time.monotonic() + CLOCKS_S if rows else float("inf")
        try:
            program.wait(SOON_S if soon else POLL_S)
        except subprocess.TimeoutExpired:
            continue
        return most


def sockets(pid: int) -> dict[tuple[str, str], int]:
    """Return how many TCP connections to elsewhere the process holds, by own address and the other's."""
    own = inodes(pid)
    found: dict[tuple[str, str], int] = {}
    for line in read("/proc/net/tcp").splitlines()[1:]:
        fields = line.split()
        local, remote, state, inode = fields[1], fields[2], fields[3], fields[9]
        pair = (address(local), address(remote))
        if state == ESTABLISHED and inode in own and not pair[1].startswith("127."):
            found[pair] = found.get(pair, 0) + 1
    return found


def inodes(pid: int) -> set[str]:
    try:
        links = [str(each.readlink()) for each in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:  # it ends just now
        return set()
    return {link[8:-1] for link in links if link.startswith("socket:[")}


def address(text: str) -> str:
    """Return an IPv4 address of /proc/net/tcp, which has it in the host's byte order."""
    return socket.inet_ntoa(int(text.partition(":")[0], 16).to_bytes(4, sys.byteorder))


def sent_by_device() -> dict[str, int]:
    """Return the bytes that each network adapter and each RDMA device has sent since it is there."""
    found = {}
    for folder in Path("/sys/class/net").iterdir():
        found[folder.name] = int(read(folder / "statistics" / "tx_bytes") or 0)
    for counter in Path("/sys/class/infiniband").glob("*/ports/*/counters/port_xmit_data"):
        device = counter.parts[4]
        found[device] = found.get(device, 0) + WORD * int(read(counter) or 0)
    return found


def differences(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    return {name: count - before.get(name, 0) for name, count in after.items() if name != "lo"}


def sent_by_priority() -> dict[str, dict[str, int]]:
    """Return the bytes that each RDMA device's interface has sent by priority, where its driver counts them."""
    return {folder.name: priority_counters(folder.name) for folder in rdma_interfaces()}


def rdma_interfaces() -> list[Path]:
    return sorted(Path("/sys/class/infiniband").glob("*/device/net/*"))


def priority_counters(interface: str) -> dict[str, int]:
    text = query_program("ethtool", "-S", interface)
    return {number: int(count) for number, count in re.findall(r"^\s*tx_prio(\d)_bytes: (\d+)$", text, re.MULTILINE)}


def query_program(*command: str) -> str:
    """Return what a program of the guest's own PATH prints; empty where it is not there, or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)  # noqa: S603 - words of ours
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout


def priority_differences(before: dict[str, dict[str, int]], after: dict[str, dict[str, int]]) -> dict[str, object]:
    devices = {folder.name: folder.parts[4] for folder in rdma_interfaces()}
    return {
        name: {"device": devices[name], "sent": differences(before.get(name, {}), counts)}
        for name, counts in after.items()
        if name in devices
    }


def cpu_counters() -> dict[str, float]:
    """Return what the guest's CPUs were kept from so far, in seconds, and seconds to hold it against.

    `steal` of /proc/stat is what the hypervisor did not give (Linux, Documentation/filesystems/proc.rst), in ticks of
    all CPUs; `some` of /proc/pressure/cpu is the time in which a task waited for a CPU, in microseconds.
    """
    ticks = [float(each) for each in read("/proc/stat").split("\n", 1)[0].split()[1:9]]
    pressure = read("/proc/pressure/cpu").split("\n", 1)[0].rpartition("total=")[2]
    found = {"time_s": time.monotonic()}
    if len(ticks) == 8:  # noqa: PLR2004 - user to steal; guest time is in user time already
        found |= {"cpu_ticks": sum(ticks), "steal_ticks": ticks[7]}
    return {**found, "pressure_s": float(pressure) / 1e6} if pressure else found


def contention(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    """Return the shares meanwhile; a kernel that does not count one (pressure needs Linux 4.20) leaves it out."""
    passed = {name: value - before[name] for name, value in after.items() if name in before}
    shares = {"steal": ("steal_ticks", "cpu_ticks"), "pressure": ("pressure_s", "time_s")}
    return {
        name: round(passed[part] / passed[total], 5)
        for name, (part, total) in shares.items()
        if part in passed and passed[total] > 0
    }


def peers(seen: dict[tuple[str, str], int]) -> list[dict[str, object]]:
    return [{"own": own, "other": other, "sockets": count} for (own, other), count in sorted(seen.items())]


def read(path: object) -> str:
    try:
        return Path(str(path)).read_text(encoding="utf-8").strip()
    except OSError:
        return ""


if __name__ == "__main__":
    sys.exit(main())
