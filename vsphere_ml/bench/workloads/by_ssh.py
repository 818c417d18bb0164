"""Starts the ranks of a job on its nodes, by the job's own `ssh`, and ends with the first that fails.

Runs in the first guest with the interpreter there (Python 3.9 and newer); what runs on the first node is a child of its
own. Each rank is given its place by RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT; with `--torchrun` there
is a `torchrun` on each node that does so.

    by_ssh.py --folder FOLDER --nodes 10.0.0.11,10.0.0.12 --ranks-per-node 1 --export HOME,PATH -- PROGRAM ARGUMENTS
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

POLL_S = 0.2
GRACE_S = 10  # for ranks to end once one has failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--folder", required=True, help="of the job, the same on all nodes")
    parser.add_argument("--nodes", required=True, help="addresses, this node's first")
    parser.add_argument("--ranks-per-node", required=True, type=int)
    parser.add_argument("--export", default="", help="names of variables that ranks get")
    parser.add_argument("--torchrun", action="store_true", help="one torchrun a node starts its ranks")
    parser.add_argument("program", nargs="+", help="what each rank executes")
    given = parser.parse_args()
    nodes, port = given.nodes.split(","), free_port()
    commands = torchruns(nodes, port, given) if given.torchrun else ranks(nodes, port, given)
    started = [
        subprocess.Popen(on_node(number, nodes[number], command, given))  # noqa: S603 - our own words
        for number, command in commands
    ]
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, lambda number, _frame: end_all(started, number))
    return wait_all(started)


def ranks(nodes: list[str], port: int, given: argparse.Namespace) -> Iterator[tuple[int, list[str]]]:
    """Yield each rank's command, and the number of its node; a node's ranks follow each other."""
    size = len(nodes) * given.ranks_per_node
    alike = [f"WORLD_SIZE={size}", f"MASTER_ADDR={nodes[0]}", f"MASTER_PORT={port}"]
    for rank in range(size):
        number, local = divmod(rank, given.ranks_per_node)
        yield number, ["env", f"RANK={rank}", f"LOCAL_RANK={local}", *alike, *given.program]


def torchruns(nodes: list[str], port: int, given: argparse.Namespace) -> Iterator[tuple[int, list[str]]]:
    """Yield each node's torchrun, and the node's number."""
    meet = ["--master_addr", nodes[0], "--master_port", str(port)]
    logs = ["--log_dir", f"{given.folder}/torchrun", *of_old_torch()]
    for number in range(len(nodes)):
        at = ["--nnodes", str(len(nodes)), "--node_rank", str(number), "--nproc_per_node", str(given.ranks_per_node)]
        torchrun = [sys.executable, "-m", "torch.distributed.run", *at, *meet, *logs, "--no_python"]
        yield number, [*torchrun, *given.program]


def of_old_torch() -> list[str]:
    """Torchrun 1.13 under Python 3.11 stops at its start unless outputs are kept: a flag of no bits has no members.

    As in https://github.com/meta-llama/llama/issues/86.
    """
    try:
        old = version("torch").startswith("1.")
    except PackageNotFoundError:  # installed without its description
        old = True
    return ["-r", "1", "-t", "1"] if old and sys.version_info >= (3, 11) else []


def on_node(number: int, address: str, command: list[str], given: argparse.Namespace) -> list[str]:
    """Return the command as it is started from here. The other nodes' shells have no variable of this one's."""
    if number == 0:
        return command
    exported = [f"{name}={os.environ[name]}" for name in given.export.split(",") if name in os.environ]
    return [f"{given.folder}/bin/ssh", address, shlex.join(["env", *exported, *command])]


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("", 0))
        return int(held.getsockname()[1])


def wait_all(started: list[subprocess.Popen[bytes]]) -> int:
    """Return 0 when all end well; the status of the first that does not, once the others are ended too."""
    while True:
        states = [each.poll() for each in started]
        failed = [state for state in states if state]
        if failed:
            end_all(started, signal.SIGTERM)
            return status(failed[0])
        if None not in states:
            return 0
        time.sleep(POLL_S)


def end_all(started: list[subprocess.Popen[bytes]], number: int) -> None:
    """End what is started from here; what is left on other nodes is ended there, by its mark."""
    for each in started:
        if each.poll() is None:
            each.send_signal(number)
    until = time.monotonic() + GRACE_S
    for each in started:
        try:
            each.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            each.kill()


def status(code: int) -> int:
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
