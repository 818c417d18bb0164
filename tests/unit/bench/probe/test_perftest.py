"""Links by perftest: what is called on each end, what it tells, and what is said where it cannot be.

Its output is written by hand after perftest's sources; what needs an RDMA device runs where there is one.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import skips
from tests.unit.bench.jobs import PEERS
from tests.unit.bench.sites import rdma_nodes
from vsphere_ml.bench.analysis.explain import explain
from vsphere_ml.bench.analysis.study import study
from vsphere_ml.bench.model.job import RunIn
from vsphere_ml.bench.model.record import Configuration, Outcome, Run, Workload
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.network.frames import usable_of_link_result
from vsphere_ml.bench.probe import link_tools, perftest, rdma
from vsphere_ml.bench.probe.perftest import End, Perftest
from vsphere_ml.bench.report.tables import links
from vsphere_ml.core.errors import BenchError

if TYPE_CHECKING:
    from tests.golden import Golden
    from vsphere_ml.bench.probe.survey import Surveyed

TOLD = (Path(__file__).parents[3] / "cases" / "imports" / "ib-write-bw.txt").read_text(encoding="utf-8")
TOOL = Perftest(path="/usr/bin/ib_write_bw", cuda=True, dma_buf=True)


def nodes(**has: object) -> tuple[Surveyed, ...]:
    return tuple(replace(each, **{"perftest": TOOL, "peermem": True, **has}) for each in rdma_nodes())  # type: ignore[arg-type]


def ends(transport: Transport, **has: object) -> list[End]:
    pairs = zip(PEERS, nodes(**has), strict=True)
    return [end for peer, each in pairs for end in link_tools.ends(peer, each, transport, RunIn.GUEST)]


def test_each_end_is_told_its_device_port_and_gid() -> None:
    sender, receiver = ends(Transport.ROCE)
    both = "-d mlx5_0 -i 1 -x 3 -p 24602 -a -n 1000 -q 1 -F --report_gbits"
    assert " ".join(perftest.command(receiver)) == f"/usr/bin/ib_write_bw {both}"
    assert " ".join(perftest.command(sender, "10.0.0.12")) == f"/usr/bin/ib_write_bw {both} 10.0.0.12"


def test_each_end_marks_its_packets_as_the_hosts_trust_them() -> None:
    (end, _) = ends(Transport.ROCE)
    assert "--tclass=106" in perftest.command(replace(end, traffic_class=106))


@pytest.mark.parametrize(
    ("has", "options"),
    [({}, ["--use_cuda=0"]), ({"peermem": False, "dma_buf": True}, ["--use_cuda=0", "--use_cuda_dmabuf"])],
)
def test_gpu_memory_is_reached_by_peermem_or_by_dma_buf(has: dict[str, object], options: list[str]) -> None:
    words = perftest.command(ends(Transport.GPUDIRECT, **has)[0])
    assert [word for word in words if "cuda" in word] == options


def test_the_largest_message_counts_against_what_headers_leave_at_the_rdma_mtu() -> None:
    link = perftest.parse_link_result(TOLD, *ends(Transport.GPUDIRECT))
    assert (link.sender, link.receiver, link.device, link.gpu_memory) == ("node-1", "node-2", "mlx5_0:1", True)
    assert (link.message_bytes, link.rdma_mtu_bytes, link.line_rate_bits_per_s) == (8388608, 1024, 100e9)
    # 1024 of payload in 1024 + 62 + 20 bytes of the wire: 92.59 of 100 Gbit/s.
    assert usable_of_link_result(link) == pytest.approx(92.585e9 / 8, rel=1e-4)
    run = Run(
        run_id="r",
        started="2026-01-31T12:00:00Z",
        ended="2026-01-31T12:00:00Z",
        outcome=Outcome.COMPLETE,
        configuration=Configuration(workload=Workload.LINK, nodes=2, ranks=2, transport=Transport.GPUDIRECT),
        link_results=(link,),
    )
    assert links(study([run])).rows[0][-1] == "99.8 % (RDMA MTU 1024)"
    assert "bench.slow-link" not in [each.code for each in explain(study([run]))]
    slow = replace(run, link_results=(replace(link, bytes_per_s=link.bytes_per_s / 2),))
    assert "bench.slow-link" in [each.code for each in explain(study([slow]))]


def test_host_memory_is_not_taken_for_a_gpus(golden: Golden) -> None:
    with pytest.raises(BenchError) as refused:
        perftest.parse_link_result(TOLD.replace("allocating GPU buffer\n", ""), *ends(Transport.GPUDIRECT))
    assert (refused.value.code, refused.value.target) == ("bench.link", "node-1 to node-2")
    golden(refused.value)
    assert refused.value.code == "bench.link"
    with pytest.raises(BenchError) as caught:
        perftest.parse_link_result(TOLD, *ends(Transport.ROCE))
    assert (caught.value.code, caught.value.target) == ("bench.link", "node-1 to node-2")
    golden(caught.value)


def test_nothing_measured_is_told_in_the_tools_own_words(golden: Golden) -> None:
    with pytest.raises(BenchError) as refused:
        perftest.parse_link_result("\nCouldn't connect to 10.0.0.12:24602\n----\n", *ends(Transport.ROCE))
    assert (refused.value.code, refused.value.target) == ("bench.link", "node-1 to node-2")
    golden(refused.value)
    assert refused.value.target == "node-1 to node-2"


@pytest.mark.parametrize(
    ("transport", "has"),
    [
        (Transport.TCP, {}),
        (Transport.ROCE, {"ports": ()}),
        (Transport.ROCE, {"ports": (rdma.Port(device="mlx5_0"),)}),
        (Transport.ROCE, {"perftest": None}),
        (Transport.GPUDIRECT, {"gpus": 0}),
        (Transport.GPUDIRECT, {"perftest": replace(TOOL, cuda=False)}),
        (Transport.GPUDIRECT, {"peermem": False}),
    ],
)
def test_what_is_not_measured_is_said_with_the_reason(
    transport: Transport, has: dict[str, object], golden: Golden
) -> None:
    text = link_tools.missing_tool(transport, nodes(**has))
    assert text is not None
    golden(text)
    diagnostic = link_tools.not_measured(transport, text)
    assert diagnostic.message == f"not measured: {text}"
    assert diagnostic.hint
    assert link_tools.missing_tool(transport, nodes(iperf3=True)) is None


def test_a_build_without_cuda_is_known_by_its_help(tmp_path: Path) -> None:
    program = tmp_path / "ib_write_bw"
    for usage, cuda in (("--use_cuda=<id> --use_cuda_dmabuf", True), ("--report_gbits", False)):
        program.write_text(f"#!/bin/sh\necho '{usage}'\nexit 1\n")
        program.chmod(0o755)
        path = f"{tmp_path}:{Path(shutil.which('grep') or '').parent}"
        completed = subprocess.run(
            ["/bin/sh", "-c", perftest.PROBE], capture_output=True, text=True, check=True, env={"PATH": path}
        )
        assert perftest.parse_probe(completed.stdout) == Perftest(path=str(program), cuda=cuda, dma_buf=cuda)
    assert perftest.parse_probe("") is None


def test_the_real_program_on_a_real_device_is_read() -> None:
    """Both ends on this machine, over the first port that RoCE can go by."""
    ports = rdma.read(subprocess.run(["sh"], input=rdma.PROBE, capture_output=True, text=True, check=True).stdout)
    tool = perftest.parse_probe(
        subprocess.run(["sh", "-c", perftest.PROBE], capture_output=True, text=True, check=False).stdout
    )
    if not rdma.rails(ports):
        pytest.skip(skips.RDMA)
    if tool is None:
        pytest.skip("no ib_write_bw is installed")
    end = End(node=PEERS[0], tool=tool, rail=rdma.rails(ports)[0], within=RunIn.GUEST)
    with subprocess.Popen(perftest.command(end), stdout=subprocess.DEVNULL):
        address = end.rail.gid.address
        call = ["sh", "-c", f"sleep 1; {' '.join(perftest.command(end, address))}"]
        text = subprocess.run(call, capture_output=True, text=True, check=True, timeout=120).stdout
    assert perftest.parse_link_result(text, end, end).bytes_per_s > 0
