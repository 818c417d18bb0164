"""What `[guest.settings]` say of how launches are made, in the guests and in their containers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.fakes.requirements import cluster
from vsphere_ml.bench.model.job import RunIn, Tools
from vsphere_ml.cli.bench.launch_settings import launch_settings
from vsphere_ml.core.errors import ConfigError

SETTINGS = {
    "runtime_path": "/opt/mine",
    "mpirun": "/opt/openmpi/bin/mpirun",
    "container_mpirun": "/usr/local/mpi/bin/mpirun",
    "container_port": "2222",
    "nccl_tests": "/opt/all_reduce_perf",
    "rdma_device": "mlx5_1",
}


def tools(within: RunIn, **settings: str) -> Tools:
    made = cluster()
    return launch_settings(replace(made, guest=replace(made.guest, settings=settings)), within, "", 60.0).tools


def test_guests_and_containers_have_programs_of_their_own() -> None:
    guest = Tools(
        python="/opt/mine/bin/python",
        mpirun="/opt/openmpi/bin/mpirun",
        all_reduce_perf="/opt/all_reduce_perf",
        rdma_device="mlx5_1",
    )
    assert tools(RunIn.GUEST, **SETTINGS) == guest
    inside = {"python": "python3", "mpirun": "/usr/local/mpi/bin/mpirun"}
    assert tools(RunIn.CONTAINER, **SETTINGS) == replace(guest, **inside, within=RunIn.CONTAINER, ssh_port=2222)


@pytest.mark.parametrize("port", ["", "ssh", "-1", "²", "12 345"])
def test_a_port_that_is_none_is_refused(port: str) -> None:
    with pytest.raises(ConfigError) as refused:
        tools(RunIn.CONTAINER, container_port=port)
    assert refused.value.target == "guest.settings.container_port"
