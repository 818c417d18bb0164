"""Which links are measured before a launch, by what, and in which order. Guests answer with hand-written output."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.bench.jobs import PEERS
from tests.unit.bench.sites import port, rdma_nodes
from vsphere_ml.bench.launch.matrix import BenchSpec
from vsphere_ml.bench.model.job import RunIn, Runtime, Tools
from vsphere_ml.bench.model.record import Cluster, Configuration, LinkLoad, Workload
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.probe.perftest import Perftest
from vsphere_ml.bench.probe.side_by_side import BOUNDARY
from vsphere_ml.core.errors import BenchError
from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.core.model.spec import RoceSpec
from vsphere_ml.core.ports.vcenter import GuestPlace
from vsphere_ml.flows.bench import links
from vsphere_ml.flows.bench.launch import BenchSession, LaunchSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tests.golden import Golden
    from vsphere_ml.core.model.guest import Shell

IMPORTS = Path(__file__).parents[3] / "cases" / "imports"
GPU_MEMORY = (IMPORTS / "ib-write-bw.txt").read_text(encoding="utf-8")
TOLD = {
    "iperf3 -c": '{"end": {"sum_received": {"bits_per_second": 9.6e9}}}',
    "--use_cuda": GPU_MEMORY,
    "ib_write_bw": GPU_MEMORY.replace("allocating GPU buffer\n", "")
    .replace("92.39", "97.00")
    .replace("0.001377", "0.001445"),
}
TOOL = Perftest(path="/usr/bin/ib_write_bw", cuda=True, dma_buf=False)


@dataclass
class Told:
    """Guests that answer each tool, and keep who was told what."""

    commands: list[tuple[str, str]] = field(default_factory=list)
    answers: Mapping[str, str] = field(default_factory=lambda: TOLD)

    def each(self, places: Sequence[GuestPlace], work: Callable[[Shell], Any]) -> Mapping[str, Any]:
        return {place.name: work(_Guest(place.name, self)) for place in places}  # type: ignore[arg-type]


@dataclass
class _Guest:
    name: str
    told: Told

    def run(self, command: str, *, stdin: object = None, timeout_s: float = 0) -> CommandAnswer:
        self.told.commands.append((self.name, command))
        answer = next((text for tool, text in self.told.answers.items() if tool in command), "")
        at_once = command.count('>"$outputs/')
        return CommandAnswer(0, f"{answer}\n{BOUNDARY}\n" * at_once if at_once else answer)


def session(guests: Told, within: RunIn = RunIn.GUEST, **has: Any) -> BenchSession:
    everything: dict[str, Any] = {"iperf3": True, "perftest": TOOL, "peermem": True, **has}
    surveyed = [replace(each, **everything) for each in rdma_nodes()]
    return BenchSession(
        spec=SimpleNamespace(roce=RoceSpec(dscp=26)),  # type: ignore[arg-type]
        guests=guests,  # type: ignore[arg-type]
        clock=None,  # type: ignore[arg-type]
        notify=lambda _event: None,
        settings=LaunchSettings(tools=Tools(within=within)),
        places=tuple(GuestPlace(name=peer.name, address=peer.address, vm=f"vm-{peer.name}") for peer in PEERS),
        peers=PEERS,
        cluster=Cluster(name="train"),
        machines={},
        surveyed=tuple(surveyed),
        runtime=Runtime(),
        interface="eth0",
        folder=Path("unused"),
    )


def asked(workload: Workload, transport: Transport = Transport.TCP) -> Configuration:
    return Configuration(workload=workload, nodes=2, ranks=2, transport=transport)


@pytest.mark.parametrize(
    ("transport", "rate"), [(Transport.TCP, 1.2e9), (Transport.ROCE, 97e9 / 8), (Transport.GPUDIRECT, 92.39e9 / 8)]
)
def test_each_transport_is_calibrated_by_its_own_tool(transport: Transport, rate: float) -> None:
    guests = Told()
    measured_links = links.measure_links(session(guests), asked(Workload.NCCL, transport), {})
    assert measured_links.bytes_per_s == pytest.approx(rate)
    # A ring: both receive before one sends.
    assert [name for name, _ in guests.commands] == ["node-1", "node-2", "node-1", "node-2"]
    assert [" -s -1 " in command or "</dev/null" in command for _, command in guests.commands] == [
        True,
        True,
        False,
        False,
    ]
    assert {each.load for each in measured_links.links} == {LinkLoad.RING}
    assert all("--tclass=104" in command for _, command in guests.commands if "ib_write_bw" in command)
    assert all("VSML_BENCH_RUN=link" in command for _, command in guests.commands if "ib_write_bw" in command)


def test_no_packet_of_full_size_may_be_lost_between_any_ports() -> None:
    guests = Told(answers={"ping": "eth1 10.1.0.12\n"})
    with pytest.raises(BenchError) as lost:
        links.check_packet_sizes(session(guests), 2)
    assert lost.value.code == "bench.packet-size"
    assert [name for name, _ in guests.commands] == ["node-1", "node-2"]
    links.check_packet_sizes(session(Told(answers={})), 2)


def test_every_port_is_measured_and_what_goes_by_all_of_them_has_their_sum() -> None:
    two = (port(), port("mlx5_1", interface="eth2"))
    measured_links = links.measure_links(session(Told(), ports=two), asked(Workload.NCCL, Transport.ROCE), {})
    assert [(each.sender, each.device) for each in measured_links.links] == [
        ("node-1", "mlx5_0:1"),
        ("node-1", "mlx5_1:1"),
        ("node-2", "mlx5_0:1"),
        ("node-2", "mlx5_1:1"),
    ]
    assert measured_links.bytes_per_s == pytest.approx(2 * 97e9 / 8)


def test_a_launch_of_links_measures_each_pair_alone_and_then_all_at_once() -> None:
    guests = Told()
    measured_links = links.measure_links(session(guests), asked(Workload.LINK), {})
    assert [(each.load, each.sender) for each in measured_links.links] == [
        (load, sender) for load in (LinkLoad.ALONE, LinkLoad.RING) for sender in ("node-1", "node-2")
    ]
    assert [name for name, _ in guests.commands[:4]] == ["node-2", "node-1", "node-1", "node-2"]
    assert all(" -P 4 " in command for _, command in guests.commands if "iperf3 -c" in command)


def test_rails_are_measured_at_once_by_their_own_addresses_and_do_not_stand_for_the_job_s_interface() -> None:
    guests, calibrated = Told(), links.Calibrated()
    here = session(guests, addresses={})
    rails = {"eth3": "10.3.0", "eth4": "10.4.0"}
    surveyed = tuple(
        replace(each, addresses={f"{network}.{number}": name for name, network in rails.items()})
        for number, each in enumerate(here.surveyed, start=1)
    )
    here = replace(here, surveyed=surveyed, settings=LaunchSettings(rails=tuple(rails)))
    measured_links = links.measure_links(here, asked(Workload.LINK), calibrated)
    at_once = [each.device for each in measured_links.links if each.load is LinkLoad.RING and each.sender == "node-1"]
    assert at_once == ["eth3", "eth4"]
    assert measured_links.bytes_per_s == pytest.approx(2 * 1.2e9)
    sent = [command for name, command in guests.commands if "iperf3 -c" in command and name == "node-1"]
    assert all("-c 10.3.0.2 -B 10.3.0.1" in each and "-c 10.4.0.2 -B 10.4.0.1" in each for each in sent)
    assert calibrated == {}


def test_rails_of_a_ring_over_rdma_find_each_other_by_ports_of_their_own() -> None:
    guests = Told()
    links.measure_links(
        session(guests, ports=(port(), port("mlx5_1", interface="eth2"))), asked(Workload.NCCL, Transport.ROCE), {}
    )
    at_once = next(command for name, command in guests.commands if name == "node-1" and "$outputs" in command)
    assert ("-d mlx5_0 -i 1" in at_once, "-d mlx5_1 -i 1" in at_once) == (True, True)
    assert ("-p 24602" in at_once, "-p 24603" in at_once, "-D 5" in at_once, " -a " in at_once) == (
        True,
        True,
        True,
        False,
    )


def test_links_are_measured_once_for_all_launches_over_the_same_way() -> None:
    guests, calibrated = Told(), links.Calibrated()
    there = session(guests)
    first = links.measure_links(there, asked(Workload.NCCL, Transport.ROCE), calibrated)
    again = links.measure_links(there, asked(Workload.TRAIN, Transport.ROCE), calibrated)
    assert (again.bytes_per_s, again.links, len(guests.commands)) == (first.bytes_per_s, (), 4)
    links.measure_links(there, asked(Workload.TRAIN, Transport.TCP), calibrated)
    assert len(guests.commands) == 8


def test_what_the_guests_have_no_tool_for_is_in_the_record_and_another_tool_does_not_stand_in(golden: Golden) -> None:
    measured_links = links.measure_links(session(Told(), perftest=None), asked(Workload.NCCL, Transport.ROCE), {})
    assert (measured_links.bytes_per_s, measured_links.links) == (None, ())
    golden([each.message for each in measured_links.diagnostics])


def test_a_tool_that_fails_ends_its_own_launch_and_no_other(golden: Golden) -> None:
    guests, calibrated = Told(answers={"ib_write_bw": "Couldn't connect to 10.0.0.12:24602"}), links.Calibrated()
    failed = links.measure_links(session(guests), asked(Workload.LINK, Transport.ROCE), calibrated)
    assert failed.failure is not None
    assert failed.failure.code == "bench.link"
    after = links.measure_links(session(guests), asked(Workload.TRAIN, Transport.ROCE), calibrated)
    assert (after.failure, after.bytes_per_s) == (None, None)
    golden(after.diagnostics[0].message)


def test_what_a_launch_of_links_leaves_out_is_not_said_of_others() -> None:
    there, calibrated = session(Told(), ports=()), links.Calibrated()
    assert len(links.measure_links(there, asked(Workload.LINK), calibrated).diagnostics) == 2
    assert links.measure_links(there, asked(Workload.TRAIN), calibrated).diagnostics == ()


def test_a_launch_of_links_alone_says_all_that_it_leaves_out(golden: Golden) -> None:
    measured_links = links.measure_links(session(Told(), ports=()), asked(Workload.LINK), {})
    golden([(each.target, each.message) for each in measured_links.diagnostics])


def test_links_are_measured_by_every_tool_that_is_there() -> None:
    bench_spec = BenchSpec(nodes=(2,), workloads=(Workload.LINK,))
    assert set(links.where_possible(bench_spec, session(Told())).link_transports) == {*Transport} - {Transport.PVRDMA}
    assert links.where_possible(bench_spec, session(Told(), gpus=0)).link_transports == (Transport.TCP, Transport.ROCE)
    spec = replace(bench_spec, transports=(Transport.ROCE,))
    # What was asked for stays, and fails aloud.
    assert links.where_possible(spec, session(Told(), ports=())).link_transports == (Transport.ROCE, Transport.TCP)


def test_in_containers_perftest_is_called_there() -> None:
    guests = Told()
    links.measure_links(session(guests, RunIn.CONTAINER), asked(Workload.NCCL, Transport.ROCE), {})
    within = ["docker", "exec", "vsml-worker", "sh", "-c"]
    assert all(shlex.split(command)[:5] == within for _, command in guests.commands)
