"""One launch and what it leaves: in the record while it runs, when it fails, when vsml is interrupted."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.fakes.clock import FakeClock
from tests.unit.bench.jobs import PEERS
from tests.unit.bench.sites import rdma_nodes
from vsphere_ml.bench.launch import matrix
from vsphere_ml.bench.launch.events import BenchEvent, ProcessesLeft
from vsphere_ml.bench.launch.matrix import PlannedLaunch
from vsphere_ml.bench.model.engines import Engine
from vsphere_ml.bench.model.job import Runtime
from vsphere_ml.bench.model.record import Cluster, Outcome, Workload
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.probe.survey import Surveyed
from vsphere_ml.bench.records import store
from vsphere_ml.core.errors import BenchError, GuestError, VsmlError
from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.core.model.spec import RoceSpec
from vsphere_ml.core.ports.vcenter import GuestPlace
from vsphere_ml.flows.bench.launch import BenchSession, LaunchSettings, SideMeasurements, obstacle, run_launch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path


COPIES = """{"nvbandwidth": {"testcases": [
{"name": "host_to_device_memcpy_ce", "status": "Passed", "bandwidth_matrix": [["26.03"]]}]}}"""
SAID = {"log": "last words\n"}


@dataclass
class Guest:
    """A guest in which jobs start, and answer a look as they are told to."""

    name: str
    read_site: Callable[[], str]
    silent: bool = False

    def ask(self, commands: Mapping[str, str]) -> Mapping[str, CommandAnswer]:
        return {name: CommandAnswer(0, self.read_site() if name == "peek" else SAID.get(name, "")) for name in commands}

    def run(self, command: str, **_how: object) -> CommandAnswer:
        return CommandAnswer(0, COPIES if "nvbandwidth" in command else "4711" if "job.sh" in command else "")

    def write(self, _path: str, _text: str, **_how: object) -> None:
        """Keep nothing."""


@dataclass
class Cable:
    """`Guests`; those that are silent cannot be entered."""

    there: Mapping[str, Guest]

    def each(self, places: Sequence[GuestPlace], work: Callable[[Any], Any]) -> dict[str, Any]:
        return {place.name: self._one(self.there[place.name], work) for place in places}

    def _one(self, guest: Guest, work: Callable[[Any], Any]) -> Any:
        if guest.silent:
            return GuestError(f"{guest.name} does not answer", code="guest.unreachable", target=guest.name)
        try:
            return work(guest)
        except VsmlError as error:
            return error


@dataclass
class Site:
    """Two guests and a record; `look` is asked for what the first guest tells of its job."""

    folder: Path
    read_site: Callable[[], str] = lambda: "0\n"
    told: list[BenchEvent] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.guests = {peer.name: Guest(peer.name, self._looked) for peer in PEERS}

    def _looked(self) -> str:
        return self.read_site()

    @property
    def session(self) -> BenchSession:
        places = tuple(GuestPlace(name=peer.name, address=peer.address, vm=peer.name) for peer in PEERS)
        spec: Any = SimpleNamespace(name="train", vcenter=SimpleNamespace(lab="default"), roce=RoceSpec())
        guests: Any = Cable(self.guests)
        return BenchSession(
            spec=spec,
            guests=guests,
            clock=FakeClock(),
            notify=self.told.append,
            settings=LaunchSettings(),
            places=places,
            peers=PEERS,
            cluster=Cluster(name="train"),
            machines={},
            surveyed=tuple(Surveyed(node=peer.name, runtime=True) for peer in PEERS),
            runtime=Runtime(),
            interface="eth0",
            folder=self.folder,
        )

    def launch(self) -> tuple[Any, VsmlError | None]:
        spec = matrix.BenchSpec(workloads=(Workload.TRAIN,), nodes=(2,))
        (configuration,) = matrix.expand(spec)
        return run_launch(self.session, spec, PlannedLaunch(configuration=configuration, launch=1), SideMeasurements())


def test_while_a_launch_runs_the_record_says_that_it_was_cut(tmp_path: Path) -> None:
    seen: list[tuple[Outcome, str]] = []

    def read_site() -> str:
        seen.extend((run.outcome, run.run_id) for run in store.read(tmp_path))
        return "1\n"

    run, error = Site(tmp_path, read_site).launch()
    assert seen == [(Outcome.CUT, run.run_id)]
    assert isinstance(error, BenchError)
    store.write(run, tmp_path)
    assert [each.outcome for each in store.read(tmp_path)] == [Outcome.FAILED]


@pytest.mark.parametrize("has_nccl", [False, True])
def test_a_launch_from_gpu_to_gpu_is_not_begun_with_a_horovod_that_reduces_on_cpus(
    tmp_path: Path,
    has_nccl: bool,  # noqa: FBT001 - a parameter
) -> None:
    nodes = tuple(replace(each, horovod_nccl=has_nccl) for each in rdma_nodes())
    session = replace(Site(tmp_path).session, surveyed=nodes)
    spec = matrix.BenchSpec(workloads=(Workload.TRAIN,), nodes=(2,), transports=(Transport.GPUDIRECT,))
    (configuration,) = matrix.expand(spec)
    why = obstacle(session, spec, PlannedLaunch(configuration=configuration, launch=1))
    assert (why is not None and (why.code, why.target)) == (not has_nccl and ("bench.no-gpu-runtime", "node-1"))


@pytest.mark.parametrize(("gpus", "code"), [(0, "bench.too-few-gpus"), (1, None)])
def test_torchrun_over_nccl_is_not_begun_where_a_rank_has_no_gpu(tmp_path: Path, gpus: int, code: str | None) -> None:
    session = replace(Site(tmp_path).session, surveyed=rdma_nodes(gpus=gpus))
    spec = matrix.BenchSpec(nodes=(2,), engine=Engine.PYTORCH, launcher="torchrun", backend="nccl")
    (configuration,) = matrix.expand(spec)
    why = obstacle(session, spec, PlannedLaunch(configuration=configuration, launch=1))
    assert (why.code if why else None) == code


def test_copies_are_measured_in_every_guest_and_no_job_is_started(tmp_path: Path) -> None:
    nodes = tuple(replace(each, nvbandwidth="/usr/bin/nvbandwidth") for each in rdma_nodes())
    session = replace(Site(tmp_path).session, surveyed=nodes)
    spec = matrix.BenchSpec(workloads=(Workload.MEMCPY,), nodes=(2,))
    (configuration,) = matrix.expand(spec)
    planned = PlannedLaunch(configuration=configuration, launch=1)
    run, error = run_launch(session, spec, planned, SideMeasurements())
    assert (run.outcome, error, run.environment.command) == (Outcome.COMPLETE, None, ())
    assert [each.sender for each in run.link_results] == ["node-1", "node-1", "node-2", "node-2"]
    assert (run.link.line_rate_bits_per_s, run.link.nics) == (None, 1)


def test_an_interrupted_launch_is_recorded_as_cut(tmp_path: Path) -> None:
    def read_site() -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Site(tmp_path, read_site).launch()
    (run,) = store.read(tmp_path)
    assert (run.outcome, run.reason) == (Outcome.CUT, "interrupted")


def test_a_guest_that_cannot_be_cleaned_up_is_told_and_recorded(tmp_path: Path) -> None:
    site = Site(tmp_path)

    def read_site() -> str:
        site.guests["node-2"].silent = True
        return "1\n"

    site.read_site = read_site
    run, _ = site.launch()
    assert [(each.code, each.target) for each in run.diagnostics] == [("bench.processes-left", "node-2")]
    assert [each.node for each in site.told if isinstance(each, ProcessesLeft)] == ["node-2"]


def test_a_launch_whose_script_vanished_is_failed(tmp_path: Path) -> None:
    run, error = Site(tmp_path, lambda: "gone\n").launch()
    assert error is not None
    assert (run.outcome, error.code) == (Outcome.FAILED, "bench.no-status")
    assert (tmp_path / f"{run.run_id}.log").read_text() == SAID["log"]
