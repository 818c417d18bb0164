"""Launch lines word for word: each case a file in tests/cases/launch, read by whoever wants to know what is typed."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.bench.jobs import job
from tests.unit.bench.sites import rdma_nodes
from vsphere_ml.bench.launch.launchers import launch
from vsphere_ml.bench.launch.programs import with_program
from vsphere_ml.bench.launch.transports import transport_settings
from vsphere_ml.bench.model.job import Job, RunIn, Runtime
from vsphere_ml.bench.model.record import Workload
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.probe.nccl_tests import AllReducePerf

CASES = sorted((Path(__file__).parents[3] / "cases" / "launch").glob("*.toml"))


def job_of(case: dict[str, Any]) -> Job:
    """Return the job that a case describes: two nodes with an RDMA device, and as many GPUs as ranks or as it says."""
    inside = case.get("in") == "container"
    runtime = Runtime(
        python="/usr/bin/python3" if inside else "/opt/vsml/runtime/bin/python",
        mpirun=case.get("mpirun", ""),
        mpi_version=tuple(int(each) for each in case.get("mpi", "").split(".") if each),
        within=RunIn(case.get("in", "guest")),
        ssh_port=12345 if inside else 0,
        variables=case.get("image", {}),
    )
    made = job(Workload(case["workload"]), case["launcher"], case["backend"], runtime, slots=case.get("slots", 1))
    asked = replace(
        made.configuration,
        options=case.get("options", {}),
        transport=Transport(case["transport"]),
        precision=case.get("precision", "fp32"),
    )
    nodes = [replace(each, horovod_nccl=True) for each in rdma_nodes(gpus=case.get("gpus", made.slots))]
    asks = transport_settings(asked, made.interface, nodes)
    options = frozenset(case.get("all_reduce_perf", ()))
    tests = AllReducePerf(path="/opt/nccl-tests/build/all_reduce_perf", over_mpi=True, options=options)
    return with_program(
        replace(made, configuration=asked, variables=asks.common, over_ucx=asks.over_ucx),
        None,
        (),
        tests if made.configuration.workload is Workload.NCCL else None,
    )


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_launch_is_these_words_these_variables_and_this_ssh(path: Path) -> None:
    case = tomllib.loads(path.read_text(encoding="utf-8"))
    made = launch(job_of(case))
    wanted = case["launch"]
    assert list(made.command) == wanted["command"].split()
    assert dict(made.variables) == wanted["variables"]
    (ssh,) = (line for line in made.files["bin/ssh"].splitlines() if line.startswith("exec"))
    assert ssh == wanted["ssh"]
    assert made.files["hostfile"] == wanted["hostfile"]
