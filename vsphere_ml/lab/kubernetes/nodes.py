"""Nodes of the lab's Kubernetes, on which pods run as processes of this machine, and their network.

virtual-kubelet speaks with the API server; a provider of ours starts what a pod says. Their network is a hub as lab
guests have it, which ends with the nodes, and every pod with it.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import NotPossible
from vsphere_ml.lab import build, server
from vsphere_ml.lab.guests import hub, needs
from vsphere_ml.lab.kubernetes import images

if TYPE_CHECKING:
    from collections.abc import Callable

    from vsphere_ml.lab.build import Program

GPU = "nvidia.com/gpu"
# What a node offers beside its processors and memory, and has no device for: a shared device plugin's default of 63.
STAND_INS = {GPU: "1", "rdma/rdma_shared_device_a": "63"}
STAND_IN = Path(__file__).parent / "standins" / "nvidia-smi"  # for containers with GPUs
START_DEADLINE_S = 120.0
LOG_LINES = 10
FOLDER = "nodes"  # below the control plane's


def start(program: Program, plane: Path, count: int, say: Callable[[str], None]) -> None:
    """Start so many nodes for the control plane of this folder, and wait until they are ready.

    NotPossible `lab.no-guests` where pods cannot run, `lab.no-runtime`, `lab.build-failed`, `lab.start-failed`.
    """
    needs.check()
    binary = build.build_program(program, say)
    home = plane / FOLDER
    home.mkdir(mode=0o700)
    made = images.make_images(home / "images", say)
    lifeline, held = os.pipe()
    try:
        os.set_inheritable(held, True)  # by the nodes alone: the hub ends with them
        center = hub.start(home / "hub", lifeline)
        settings = _settings(plane, center, count, made)
        (home / "settings.json").write_text(json.dumps(settings))
        ready = home / "ready"
        arguments = [str(binary), "--state", str(home), "--settings", str(home / "settings.json")]
        pid = server.spawn(
            [*arguments, "--ready", str(ready), "serve"], home / "log"
        )  # the word by which labs are known
        (home / "pid").write_text(str(pid))
    finally:
        os.close(lifeline)
        os.close(held)
    _wait_ready(ready, pid, home / "log")


def stop(plane: Path) -> None:
    """End the nodes of this control plane, and every pod."""
    home = plane / FOLDER
    if (home / "pid").exists():
        server.end_process(int((home / "pid").read_text()), home)
    hub.end(home / "hub")


def names(count: int) -> list[str]:
    """Return the nodes' names: those of VMs that `vsml provision` makes from the lab's example."""
    return [f"node-{number:02d}" for number in range(1, count + 1)]


def _settings(plane: Path, center: hub.Hub, count: int, made: dict[str, dict[str, object]]) -> dict[str, object]:
    return {
        "folder": str(plane / FOLDER / "pods"),
        "kubeconfig": str(plane / "kubeconfig"),
        "client": str(plane / "kubelet-client.crt"),
        "hub": center.pid,
        "network": str(center.network),
        "nodes": names(count),
        "standins": STAND_INS,
        "driver": str(STAND_IN),
        "images": made,
    }


def _wait_ready(ready: Path, pid: int, log: Path) -> None:
    deadline = time.monotonic() + START_DEADLINE_S
    while not ready.exists():
        ended = bool(os.waitpid(pid, os.WNOHANG)[0])
        if ended or time.monotonic() > deadline:
            raise NotPossible(
                "the nodes of the lab's Kubernetes did not start",
                code="lab.start-failed",
                target=str(log),
                details=tuple(log.read_text(errors="replace").splitlines()[-LOG_LINES:]) if log.exists() else (),
            )
        time.sleep(0.1)
