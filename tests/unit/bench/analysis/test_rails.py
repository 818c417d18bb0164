"""All NICs of a node at once: their share of the nominal sum, and channels that leave some of them idle."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.fakes import public_logs
from tests.unit.bench import synthetic
from tests.unit.bench.sites import port
from tests.unit.flows.bench.test_links import GPU_MEMORY, Told, asked, session
from vsphere_ml.bench.analysis.explain import explain
from vsphere_ml.bench.analysis.rails import nic_channels, node_rails
from vsphere_ml.bench.analysis.study import study
from vsphere_ml.bench.imports.parsed import ImportOptions
from vsphere_ml.bench.model.record import Link, LinkLoad, LinkResult, Run, Workload
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.report import tables
from vsphere_ml.flows.bench import links

if TYPE_CHECKING:
    from tests.golden import Golden

LOG = (Path(__file__).parents[3] / "cases" / "nccl" / "gpudirect.log").read_text()


def measured(transport: Transport, link: Link, results: tuple[LinkResult, ...]) -> Run:
    made = synthetic.sweep(2)
    configuration = asked(Workload.LINK, transport)
    return replace(made, configuration=configuration, sweep=(), paths=(), link=link, link_results=results)


def over_tcp(*rates: float) -> Run:
    """Return two nodes with a rail for each rate in Gbit/s, both sending to each other; the NICs are of 10 Gbit/s."""
    results = tuple(
        LinkResult(tool="iperf3", sender=one, receiver=other, bytes_per_s=rate / 8, device=f"eth{at}", load=load)
        for load in LinkLoad
        for one, other in (("node-1", "node-2"), ("node-2", "node-1"))
        for at, rate in enumerate(rates, start=1)
    )
    return measured(Transport.TCP, Link(line_rate_bits_per_s=10e9, mtu_bytes=1500, nics=len(rates)), results)


def test_what_a_node_sends_by_all_rails_is_held_against_the_sum_of_their_rates() -> None:
    found = node_rails([over_tcp(9e9, 9e9, 9e9, 3e9)])
    assert [(each.node, each.rails) for each in found] == [
        (node, ("eth1", "eth2", "eth3", "eth4")) for node in ("node-1", "node-2")
    ]
    assert {round(each.share or 0.0, 3) for each in found} == {0.75}
    assert node_rails([over_tcp(9e9)]) == ()
    three = node_rails([over_tcp(9e9, 9e9), over_tcp(8e9, 8e9), over_tcp(4e9, 4e9)])
    assert {round(each.share or 0.0, 3) for each in three} == {0.8}  # the median launch


def test_one_rail_is_held_against_its_own_rate_and_not_against_the_sum() -> None:
    (row, *_) = tables.links(study([over_tcp(9e9, 9e9)])).rows
    assert row[-1].startswith("95.6 %")  # of 10 Gbit/s without headers


def test_four_ports_of_100_gigabit_that_carry_42_gigabytes_carry_84_percent() -> None:
    """The origin's figure of a Hyperplane, from perftest's own output for each port."""
    ports = tuple(port(f"mlx5_{at}", interface=f"eth{at}") for at in range(4))
    output = GPU_MEMORY.replace("92.39", "84.00").replace("0.001377", "0.001252")
    here = session(Told(answers={"--use_cuda": output}), ports=ports)
    result = links.measure_links(here, asked(Workload.LINK, Transport.GPUDIRECT), {})
    (one, other) = node_rails([measured(Transport.GPUDIRECT, Link(nics=4), result.links)])
    assert [one.bytes_per_s, one.nominal_bytes_per_s] == pytest.approx([42e9, 50e9])
    assert (round(one.share or 0.0, 6), other.node) == (0.84, "node-2")


def four_nics(*used: int) -> Run:
    """Return nccl-tests' log of nodes with four NICs, whose channels go by those of these numbers."""
    ports = " ".join(f"[{at}]mlx5_{at}:1/RoCE" for at in range(4))
    lines = []
    for line in LOG.replace("[0]mlx5_0:1/RoCE", ports).splitlines():
        if "via NET/IB/0/" not in line:
            if " Using [0]" in line:
                lines.append(line.replace("node-1:4101:4177", "node-2:4102:4178"))
            lines.append(line)
            continue
        for channel, nic in enumerate(used):
            lines.append(line.replace("00/0", f"{channel:02}/0").replace("NET/IB/0/", f"NET/IB/{nic}/"))
    table = "\n".join(lines).replace(" 10.00   10.00", " 42.00   42.00").replace("   419.4", "  99.864")
    table = table.replace("   104.9", "  24.966").replace("   209.7", "  49.932")
    given = ImportOptions(link=Link(line_rate_bits_per_s=100e9, nics=4), transport=Transport.GPUDIRECT)
    return public_logs.imported(table, given)


def test_channels_are_counted_by_nic_and_nics_without_any_are_named(golden: Golden) -> None:
    even, half = four_nics(0, 1, 2, 3), four_nics(0, 0, 2, 2)
    assert [(each.node, len(each.channels), each.nics) for each in nic_channels([even])] == [
        ("node-1", 4, 4),
        ("node-2", 4, 4),
    ]
    assert [each for each in explain(study([even])) if each.code == "bench.idle-nic"] == []
    idle = [each for each in explain(study([half])) if each.code == "bench.idle-nic"]
    assert [each.target for each in idle] == ["node-1", "node-2"]
    golden([each.message for each in idle])
    golden([" | ".join(row) for row in tables.channels(study([half])).rows])


def test_42_gigabytes_of_an_imported_sweep_are_84_percent_of_four_nics(golden: Golden) -> None:
    (sweep,) = study([four_nics(0, 1, 2, 3)]).sweeps
    golden(tables.describe_fit(sweep))
