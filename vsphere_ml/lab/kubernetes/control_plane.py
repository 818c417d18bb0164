"""Starts and stops the lab's Kubernetes: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, mpi-operator.

They listen on loopback and on sockets in a folder of their owner's. The first start builds them, in some ten minutes of
CPU time.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import NotPossible
from vsphere_ml.lab import build, folders, server, state, toolchain
from vsphere_ml.lab.kubernetes import nodes as lab_nodes
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

SOURCES = Path(__file__).parent
# Without its version the API server calls itself v0.0.0, and clients hold that against their own.
_VERSION = "-X k8s.io/component-base/version.gitVersion=v1.36.2"
KUBERNETES = build.Program(
    "vsml-lab-kubernetes", SOURCES / "controlplane", ".", "seven minutes of CPU time", f"-s -w {_VERSION}"
)
MPI_OPERATOR = "github.com/kubeflow/mpi-operator"
OPERATOR = build.Program(
    "mpi-operator", SOURCES / "operator", f"{MPI_OPERATOR}/cmd/mpi-operator", "four minutes of CPU time"
)
NODES = build.Program("vsml-lab-nodes", SOURCES / "nodes", ".", "two minutes of CPU time")
MANIFESTS = "deploy/v2beta1/mpi-operator.yaml"  # of the operator's module: namespace, CRD, and roles
OPERATOR_PORT = 8080  # its health check's
START_DEADLINE_S = 480.0
LOG_LINES = 10


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """A control plane that runs: where it answers, its release, and the file by which clients sign in."""

    server: str
    kubeconfig: Path
    kubernetes: str
    pid: int


def start(name: str = state.DEFAULT, say: Callable[[str], None] = build.to_stderr, *, nodes: int = 0) -> ControlPlane:
    """Start a control plane with so many nodes, or return the one that runs, as it is.

    NotPossible `lab.build-failed`, `lab.start-failed`, and with nodes `lab.no-guests` and `lab.no-runtime`.
    """
    home = folder(name)
    with folders.hold_lock(home.with_name(f".{name}.lock")):
        if (running := find(name)) is not None:
            return running
        program, operator = build.build_program(KUBERNETES, say), build.build_program(OPERATOR, say)
        _sweep(home)
        _check_port()
        home.mkdir(parents=True, mode=0o700)
        manifests = _operator_module(say) / MANIFESTS
        arguments = [str(program), "serve", "--state", str(home), "--operator", str(operator)]
        pid = server.spawn([*arguments, "--manifests", str(manifests)], home / "log")
        (home / "pid").write_text(str(pid))
        try:
            plane = _wait_ready(name, pid)
            if nodes:
                lab_nodes.start(NODES, home, nodes, say)
        except BaseException:
            lab_nodes.stop(home)
            server.end_process(pid, home)  # its logs stay
            raise
        return plane


def stop(name: str = state.DEFAULT) -> bool:
    """Stop the control plane and remove what it stored; return whether one ran."""
    home = folder(name)
    if not home.is_dir():
        return False
    with folders.hold_lock(home.with_name(f".{name}.lock")):
        running = find(name) is not None
        _sweep(home)
    return running


def find(name: str = state.DEFAULT) -> ControlPlane | None:
    """Return the control plane called `name` if it runs."""
    home = folder(name)
    try:
        ready = json.loads((home / "ready.json").read_text())
        found = ControlPlane(ready["server"], Path(ready["kubeconfig"]), ready["kubernetes"], ready["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if state.runs(found.pid, home) else None


def folder(name: str) -> Path:
    """Return where a control plane stores its keys, data and logs; ConfigError for a name that cannot be one."""
    return state.folder(name).parents[1] / "kubernetes" / name


def _check_port() -> None:
    """Raise where the operator would end again and again: its health port cannot be chosen (v0.8.2, server.go)."""
    try:
        socket.create_server(("", OPERATOR_PORT)).close()
    except OSError as error:
        raise NotPossible(
            f"mpi-operator needs port {OPERATOR_PORT}: {error.strerror}",
            code="lab.start-failed",
            target=f"port {OPERATOR_PORT}",
            hint=f"`ss -ltnp 'sport = :{OPERATOR_PORT}'` names who has it; another lab's Kubernetes may",
        ) from error


def _operator_module(say: Callable[[str], None]) -> Path:
    """Return the operator's module in Go's cache, where its manifests lie, downloaded again when it is gone."""
    go = toolchain.find(say, OPERATOR.module)
    done = subprocess.run(  # noqa: S603 - a toolchain we found, fixed arguments
        [go, "mod", "download", "-json", MPI_OPERATOR],
        cwd=OPERATOR.module,
        env=toolchain.environment(go),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise NotPossible(
            "the MPI operator's manifests could not be downloaded",
            code="lab.build-failed",
            target=MPI_OPERATOR,
            details=tuple((done.stdout + done.stderr).splitlines()[-LOG_LINES:]),
        )
    return Path(json.loads(done.stdout)["Dir"])


def _wait_ready(name: str, pid: int) -> ControlPlane:
    deadline = time.monotonic() + START_DEADLINE_S
    while time.monotonic() < deadline:
        if (found := find(name)) is not None:
            return found
        if os.waitpid(pid, os.WNOHANG)[0]:
            raise _not_started(name, "ended at once")
        time.sleep(0.1)
    raise _not_started(name, f"did not answer within {START_DEADLINE_S:.0f} s")


def _not_started(name: str, what: str) -> NotPossible:
    log = folder(name) / "log"
    lines = log.read_text(errors="replace").splitlines()[-LOG_LINES:] if log.exists() else ()
    return NotPossible(
        f"the lab's Kubernetes {what}", code="lab.start-failed", target=str(log.parent), details=tuple(lines)
    )


def _sweep(home: Path) -> None:
    lab_nodes.stop(home)
    if (home / "pid").exists():
        server.end_process(int((home / "pid").read_text()), home)
    shutil.rmtree(home, ignore_errors=True)
