"""What UCX logged that MPI went by. The form is that of public logs of UCX 1.15 to 1.22; hosts and devices are made."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.bench.jobs import job, trained
from vsphere_ml.bench.model import rank_log
from vsphere_ml.bench.model.record import Verdict, Workload
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.proof.ucx import of_ucx, prove_ucx

LINE = "[1701292112.829711] [{host}:162239:0]      ucp_worker.c:1855 UCX  INFO    0x100b240 {what}\n"
# Of UCX 1.20.1 as MPICH 5.0.2 brings it, from two ranks on one machine on 27 November 2026; the host's name is made.
INSIDE = """\
[1795802653.728663] [node-2:25633:0]          parser.c:2364 UCX  INFO  UCX_* env variables: UCX_NET_DEVICES=eth0
[1795802653.738946] [node-2:25633:0]      ucp_worker.c:1912 UCX  INFO    ucp_context_0 intra-node cfg#1 tag(tcp/eth0)
"""
RC = "inter-node cfg#2 tag(rc_verbs/vmw_pvrdma0:1)"


def log(*said: tuple[str, str]) -> str:
    return "".join(LINE.format(host=host, what=what) for host, what in said)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (log(("node-1", RC), ("node-2", RC)), Verdict.YES),
        (log(("node-1", RC), ("node-2", "inter-node cfg#1 tag(tcp/eth0)")), Verdict.NO),
        (log(("node-1", RC)) + INSIDE, Verdict.UNKNOWN),
        # A process id of less than six digits is filled up, as UCX 1.18.1 under Open MPI 4.1.8 was seen to do.
        (log(("node-1", RC), ("node-2", RC)).replace(":162239:", ":4808 :"), Verdict.YES),
        (f"[1,0]<stderr>:{log(('node-1', RC))}[1,1]<stderr>:{log(('node-2.lab', RC))}", Verdict.YES),
    ],
    ids=["rdma", "tcp", "silent", "short pid", "tagged"],
)
def test_mpi_goes_by_rdma_when_ucx_of_every_node_says_so(text: str, verdict: Verdict) -> None:
    made = job(Workload.TRAIN, "mpirun", "mpi")
    asked = replace(made, configuration=replace(made.configuration, transport=Transport.PVRDMA), over_ucx=True)
    logs = rank_log.read({"node-1": trained(0), "node-2": trained(1)})
    proof = prove_ucx(asked, logs, of_ucx(text))
    assert proof is not None
    assert (proof.name, proof.verdict) == ("path", verdict)


def test_every_lane_has_its_device() -> None:
    two = log(("node-1", "inter-node cfg#3 tag(rc_mlx5/mlx5_0:1 rc_mlx5/mlx5_1:1) rma(rc_mlx5/mlx5_0:1)"))
    assert [(each.carrier, each.nic) for each in of_ucx(two)] == [
        ("UCX/rc_mlx5", "mlx5_0:1"),
        ("UCX/rc_mlx5", "mlx5_1:1"),
    ]
