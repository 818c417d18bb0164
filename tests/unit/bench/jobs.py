"""Jobs and what their ranks tell, for tests."""

from __future__ import annotations

import json
from typing import Any

from vsphere_ml.bench.model.job import MPICH, Job, Runtime
from vsphere_ml.bench.model.record import Configuration, Workload
from vsphere_ml.core.model.guest import Peer

PEERS = (Peer(name="node-1", address="10.0.0.11"), Peer(name="node-2", address="10.0.0.12"))
OPEN_MPI_4 = Runtime(mpirun="/opt/openmpi/bin/mpirun", mpi_version=(4, 1, 8))
OPEN_MPI_5 = Runtime(mpirun="/opt/openmpi/bin/mpirun", mpi_version=(5, 0, 11))
HYDRA = Runtime(mpirun="/opt/mpich/bin/mpirun", mpi=MPICH, mpi_version=(5, 0, 2))


def job(
    workload: Workload = Workload.TRAIN,
    launcher: str = "horovodrun",
    backend: str = "gloo",
    runtime: Runtime | None = None,
    slots: int = 1,
) -> Job:
    asked = Configuration(
        workload=workload, nodes=2, ranks=2 * slots, launcher=launcher, backend=backend, model="small", batch=32
    )
    return Job(
        run_id="train-0a1b",
        configuration=asked,
        nodes=PEERS,
        slots=slots,
        interface="eth0",
        runtime=runtime or Runtime(),
        program=("/opt/vsml/runtime/bin/python", "/var/tmp/vsml-bench/train-0a1b/train.py"),
        limit_s=600,
    )


def place(rank: int, **but: Any) -> str:
    line = {
        "schema": "vsml.bench.rank/1",
        "kind": "place",
        "rank": rank,
        "size": 2,
        "local_rank": 0,
        "hostname": f"node-{rank + 1}",
        "boot_id": f"boot-{rank}",
        "interface": {
            "name": "eth0",
            "mac": "00:50:56:00:00:01",
            "pci": "0000:0b:00.0",
            "mtu": 1500,
            "driver": "vmxnet3",
        },
        "gpus": [],
    }
    return told(**(line | but))


def told(**line: Any) -> str:
    return json.dumps(line) + "\n"


def trained(rank: int, weights: str = "aa11", steps: tuple[float, ...] = (2.0, 0.1, 0.1), **but: Any) -> str:
    """Return all that a rank of a training run tells."""
    lines = [place(rank, **but), told(kind="model", device="CPU", parameters=7, versions={"horovod": "0.28.1"})]
    lines += [told(kind="step", step=at, seconds=each, compute_s=each / 2) for at, each in enumerate(steps)]
    return "".join(lines) + told(kind="sync", weights=weights) + told(kind="end") + traffic(rank)


def traffic(rank: int, own: str = "", other: str = "") -> str:
    own, other = own or f"10.0.0.1{rank + 1}", other or f"10.0.0.1{2 - rank}"
    return told(kind="traffic", bytes={"eth0": 1_200_000_000}, peers=[{"own": own, "other": other, "sockets": 3}])
