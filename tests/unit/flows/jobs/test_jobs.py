"""Which job is meant, what its lines and its end are shown as, and that a guest that is lost is entered again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.fakes.clock import FakeClock
from tests.fakes.pictures import quad_8u3
from tests.fakes.requirements import cluster
from tests.fakes.site import FakeVCenter
from tests.unit.bench.launch.test_user_job import RECORD
from tests.unit.bench.sites import rdma_nodes
from vsphere_ml.bench.launch.user_job import LogPiece
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.model.user_job import FoundJob, JobState
from vsphere_ml.bench.probe.survey import Surveyed
from vsphere_ml.core.errors import ConfigError, GuestError, NotPossible, VsmlError
from vsphere_ml.core.hints import CommandLine, hint_parts
from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.core.ports.vcenter import GuestPlace
from vsphere_ml.flows.guests.command import KnownPlaces
from vsphere_ml.flows.guests.guests import find
from vsphere_ml.flows.jobs import follow
from vsphere_ml.flows.jobs.fetch import fetch_job
from vsphere_ml.flows.jobs.find import JobList, JobPlaces, choose_job, find_jobs, find_places
from vsphere_ml.flows.jobs.given import GivenOptions
from vsphere_ml.flows.jobs.start import choose_transport
from vsphere_ml.flows.jobs.stop import stop_job

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

GIVEN = GivenOptions(file="-f other.toml ", place="--run-in container ")
FIRST = GuestPlace(name="node-1", address="10.0.0.11", vm="vm-1")
OTHER = GuestPlace(name="x", address="", vm="")
PLACES = (FIRST, GuestPlace(name="node-2", address="10.0.0.12", vm="vm-2"))
ON_TWO = replace(RECORD, nodes=(("node-1", "10.0.0.11"), ("node-2", "10.0.0.12")))


def found(run_id: str, state: JobState = JobState.RUNNING, status: int | None = None) -> FoundJob:
    return FoundJob(record=replace(RECORD, run_id=run_id), state=state, status=status)


JOBS = JobList(
    cluster="train",
    jobs=(found("train-cc", JobState.ENDED, 0), found("train-bc"), found("train-aa", JobState.LOST)),
    errors={},
)


@pytest.mark.parametrize(
    ("run_id", "running", "chosen"),
    [
        ("", False, "train-cc"),
        ("", True, "train-bc"),
        ("train-aa", False, "train-aa"),
        ("aa", True, "train-aa"),
        ("c", False, "job.several"),
        ("train-dd", False, "job.not-found"),
    ],
)
def test_a_job_is_the_one_that_is_named_or_the_latest_or_the_one_that_runs(
    run_id: str, *, running: bool, chosen: str
) -> None:
    try:
        assert choose_job(JOBS, run_id, running=running).record.run_id == chosen
    except NotPossible as error:
        assert error.code == chosen  # noqa: PT017 - a name or a code


def test_where_not_all_nodes_could_be_asked_no_job_is_said_to_be_on_none_of_them() -> None:
    errors = {"node-2": GuestError(reason="it does not answer", code="guest.unreachable", target="node-2")}
    said = []
    for each in ({}, errors):
        with pytest.raises(NotPossible) as raised:
            choose_job(JobList(cluster="train", jobs=(), errors=each), "train-dd")
        said.append(raised.value.message)
    assert said[0] != said[1]


@pytest.mark.parametrize(
    ("state", "status", "code"),
    [
        (JobState.RUNNING, None, None),
        (JobState.ENDED, 0, None),
        (JobState.ENDED, 7, "job.failed"),
        (JobState.STOPPED, None, "job.stopped"),
        (JobState.LOST, None, "job.lost"),
    ],
)
def test_a_job_that_did_not_end_well_is_an_error(state: JobState, status: int | None, code: str | None) -> None:
    error = follow.describe_end(found("train-cc", state, status), ["[1] No space left on device"])
    assert (error and error.code) == code


@pytest.mark.parametrize(
    ("state", "line", "hint"),
    [
        (JobState.LOST, "", "vsml run -f other.toml --sudo --only node-1 -- 'uptime; dmesg -T | tail'"),
        (JobState.ENDED, "[1] No space left on device", "vsml run -f other.toml -- df -h / /dev/shm /var/tmp"),
        (JobState.ENDED, "NCCL WARN ibv_modify_qp failed", "vsml bench -f other.toml --workload link"),
    ],
)
def test_what_to_type_after_a_jobs_end_names_the_file(state: JobState, line: str, hint: str) -> None:
    log = follow.JobLog(record=RECORD, show=lambda _lines: None, lines=[line])
    nodes = JobPlaces(places=(FIRST,), errors={}, given=GIVEN)
    error = follow.report(Guests(), nodes, found("train-cc", state, 1), log).error  # type: ignore[arg-type]
    assert error is not None
    assert hint in error.hint


def test_other_commands_of_a_job_are_hinted_at_with_file_and_place() -> None:
    stopped = stop_job(
        Guests([lambda _work: 1, lambda _work: 1, lose]),  # type: ignore[arg-type]
        JobPlaces(places=PLACES, errors={}, given=GIVEN),
        ON_TWO,
        delete=True,
    )
    assert stopped.error is not None
    assert f"stop {GIVEN.of_job}{ON_TWO.run_id} --delete" in stopped.error.hint
    with pytest.raises(NotPossible) as refused:
        choose_job(replace(JOBS, given=GIVEN), "train-dd")
    assert refused.value.hint.endswith(f"list {GIVEN.of_job.rstrip()}")


def test_who_stops_no_job_that_runs_is_told_how_to_delete_the_latest_that_ended() -> None:
    ended = replace(JOBS, jobs=(found("train-cc", JobState.ENDED, 0), found("train-aa", JobState.LOST)), given=GIVEN)
    with pytest.raises(NotPossible) as refused:
        choose_job(ended, "", running=True)
    listed, deletes = (part for part in hint_parts(refused.value.hint) if isinstance(part, CommandLine))
    assert listed.endswith(f"list {GIVEN.of_job.rstrip()}")
    assert deletes.endswith(f"stop {GIVEN.of_job}train-cc --delete")


def test_a_record_that_cannot_be_read_is_looked_at_with_the_file() -> None:
    shell = SimpleNamespace(name="node-1", ask=lambda _asked: {"jobs": CommandAnswer(0, "running\t\t\t{", "")})
    nodes = JobPlaces(places=(FIRST,), errors={}, given=GIVEN)
    jobs = find_jobs(cluster(1), Guests([lambda work: work(shell)]), nodes)  # type: ignore[arg-type]
    assert f"run {GIVEN.file}--sudo" in jobs.errors["node-1"].hint


def test_the_launchers_own_marks_are_not_shown_and_lines_are_entire() -> None:
    shown: list[str] = []
    log = follow.JobLog(record=replace(RECORD, launcher="horovodrun"), show=shown.extend)
    log.add(b"[0]<stdout>:[0] first\n[1]<std")
    log.add(b"err>:[1] second\r\n[0] \xff")
    assert shown == ["[0] first", "[1] second"]
    log.end()
    assert shown[2:] == ["[0] \ufffd"]
    assert log.offset == len(b"[0]<stdout>:[0] first\n[1]<stderr>:[1] second\r\n[0] \xff")


@dataclass
class Guests:
    """Guests that do what a test says each time they are entered."""

    visits: list[Callable[[Any], Any]] = field(default_factory=list)
    entered: list[str] = field(default_factory=list)

    def each(self, places: Sequence[GuestPlace], work: Callable[[Any], Any]) -> Mapping[str, Any]:
        answers: dict[str, Any] = {}
        for place in places:
            self.entered.append(place.name)
            try:
                answers[place.name] = self.visits.pop(0)(work)
            except VsmlError as error:
                answers[place.name] = error
        return answers


def lose(_work: object) -> None:
    raise GuestError(reason="the connection broke", code="guest.connection-lost", target="node-1")


def refuse(_work: object) -> None:
    raise GuestError(reason="another key", code="guest.host-key-changed", target="node-1")


def test_a_guest_that_is_lost_on_the_way_is_entered_again() -> None:
    ended = LogPiece(state=JobState.ENDED, status=0, data=b"")
    guests: Any = Guests([lose, lose, lambda _work: ended])
    log = follow.JobLog(record=RECORD, show=lambda _lines: None)
    assert follow.follow(guests, FIRST, log, FakeClock()) == ended


def test_of_a_job_that_was_followed_it_is_known_when_it_ended() -> None:
    piece = LogPiece(state=JobState.ENDED, status=0, data=b"", ended_s=1_800_000_000)
    assert follow.update_job(found("train-cc"), piece).ended_s == piece.ended_s


def test_how_a_job_ended_is_told_where_a_node_of_it_can_no_longer_be_asked() -> None:
    off = GuestError(reason="why", code="guest.off", target="node-2")
    ended = replace(found("train-bc", JobState.ENDED, 0), record=ON_TWO)
    log = follow.JobLog(record=ON_TWO, show=lambda _lines: None)
    report = follow.report(Guests([]), JobPlaces(places=(FIRST,), errors={"node-2": off}), ended, log)  # type: ignore[arg-type]
    assert (report.job, report.proofs, report.error) == (ended, (), off)


@pytest.mark.parametrize("visits", [[refuse], [lose] * 100])
def test_a_guest_that_stays_lost_ends_it(visits: list[Callable[[Any], Any]]) -> None:
    guests: Any = Guests(visits)
    with pytest.raises(GuestError):
        follow.follow(guests, FIRST, follow.JobLog(record=RECORD, show=lambda _lines: None), FakeClock())


def test_the_first_node_is_stopped_before_the_others_and_seen_to_again() -> None:
    guests: Any = Guests([lambda _work: 3, lambda _work: 0, lose])
    stopped = stop_job(guests, JobPlaces(places=(*PLACES, OTHER), errors={}), ON_TWO)
    assert guests.entered == ["node-1", "node-1", "node-2"]
    assert (stopped.ended, list(stopped.errors)) == ({"node-1": 3}, ["node-2"])
    assert stopped.error is not None
    assert stopped.error.code == "job.not-stopped"


def test_files_are_deleted_where_all_has_ended_the_record_last() -> None:
    guests: Any = Guests([lambda _work: 1] * 5)
    assert stop_job(guests, JobPlaces(places=PLACES, errors={}), ON_TWO, delete=True).deleted
    assert guests.entered[-2:] == ["node-2", "node-1"]
    kept: Any = Guests([lambda _work: 1, lambda _work: 1, lose])
    assert not stop_job(kept, JobPlaces(places=PLACES, errors={}), ON_TWO, delete=True).deleted
    assert kept.entered == ["node-1", "node-1", "node-2"]


@pytest.mark.parametrize(
    ("code", "delete", "named"),
    [
        ("guest.no-address", False, True),
        ("guest.off", False, False),
        ("guest.off", True, True),
        ("guest.no-vm", False, True),
        ("guest.no-vm", True, True),
    ],
)
def test_a_node_that_cannot_be_found_is_named_where_something_of_the_job_may_be_left(
    code: str, *, delete: bool, named: bool
) -> None:
    nodes = JobPlaces(places=(FIRST,), errors={"node-2": GuestError(reason="why", code=code, target="node-2")})
    stopped = stop_job(Guests([lambda _work: 1] * 3), nodes, ON_TWO, delete=delete)  # type: ignore[arg-type]
    assert list(stopped.errors) == ["node-2"] * named
    with pytest.raises(GuestError):
        nodes.of(ON_TWO.node_names)
    assert nodes.of(("node-1",)) == (FIRST,)


def test_a_node_that_left_the_file_is_stopped_where_it_was_entered_last() -> None:
    nodes = JobPlaces(places=(FIRST,), errors={}).add(ON_TWO.node_names, {"node-2": PLACES[1], "x": OTHER})
    guests: Any = Guests([lambda _work: 3, lambda _work: 0, lambda _work: 2])
    stopped = stop_job(guests, nodes, ON_TWO)
    assert guests.entered == ["node-1", "node-1", "node-2"]
    assert (stopped.ended, stopped.error) == ({"node-1": 3, "node-2": 2}, None)


@pytest.mark.parametrize("delete", [False, True])
def test_a_node_that_left_the_file_and_is_nowhere_known_is_named_and_the_record_stays(*, delete: bool) -> None:
    nodes = JobPlaces(places=(FIRST,), errors={}, given=GIVEN).add(ON_TWO.node_names, {})
    guests: Any = Guests([lambda _work: 3, lambda _work: 0])
    stopped = stop_job(guests, nodes, ON_TWO, delete=delete)
    assert (guests.entered, stopped.deleted) == (["node-1", "node-1"], False)
    assert {name: each.code for name, each in stopped.errors.items()} == {"node-2": "job.absent-node"}
    assert stopped.error is not None
    assert ("node-2" in stopped.error.message, stopped.error.status) == (True, 5)
    assert (f"run {GIVEN.file}--sudo -- rm -rf {ON_TWO.root}" in stopped.error.hint) is delete


def test_what_a_job_made_comes_from_the_nodes_that_answer_and_the_others_are_named(tmp_path: Path) -> None:
    nodes = JobPlaces(places=(FIRST, OTHER), errors={}, given=GIVEN).add(ON_TWO.node_names, {})
    fetched = fetch_job(Guests([lambda _work: ("job.log",)]), nodes, ON_TWO, tmp_path)  # type: ignore[arg-type]
    assert (fetched.files, list(fetched.errors)) == ({"node-1": ("job.log",)}, ["node-2"])
    assert fetched.error is not None
    assert (fetched.error.code, fetched.error.status) == ("job.not-fetched", 5)
    assert GIVEN.of_job in fetched.error.hint


def test_where_nothing_can_be_fetched_it_is_said_why(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(GuestError) as lost:
        fetch_job(Guests([lose]), JobPlaces(places=(FIRST,), errors={}), RECORD, tmp_path)  # type: ignore[arg-type]
    with pytest.raises(ConfigError) as unwritable:
        fetch_job(Guests(), JobPlaces(places=(FIRST,), errors={}), RECORD, tmp_path / "file")  # type: ignore[arg-type]
    assert (lost.value.code, unwritable.value.code) == ("guest.connection-lost", "file.unwritable")


def test_a_folder_that_nobody_may_write_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse_folder(**_how: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryDirectory", refuse_folder)
    with pytest.raises(ConfigError) as unwritable:
        fetch_job(Guests(), JobPlaces(places=(FIRST,), errors={}), RECORD, tmp_path)  # type: ignore[arg-type]
    assert unwritable.value.code == "file.unwritable"


def test_jobs_are_listed_where_a_node_cannot_be_found() -> None:
    spec = cluster(3)
    known = KnownPlaces(
        known={"node-1": FIRST}, find=lambda names: find(spec, FakeVCenter(quad_8u3()).inventory, names)
    )
    nodes = find_places(spec, known, GivenOptions())
    jobs = find_jobs(spec, Guests([lambda _work: [found("train-bc")]]), nodes)  # type: ignore[arg-type]
    assert [job.record.run_id for job in jobs.jobs] == ["train-bc"]
    assert {name: error.code for name, error in jobs.errors.items()} == dict.fromkeys(
        ("node-2", "node-3"), "guest.no-vm"
    )


def test_nccl_takes_the_best_that_all_guests_have() -> None:
    nodes = rdma_nodes()
    without = tuple(replace(each, peermem=False, dma_buf=False) for each in nodes)
    assert choose_transport(tuple(replace(each, peermem=True) for each in nodes)) is Transport.GPUDIRECT
    assert choose_transport(without) is Transport.ROCE
    assert choose_transport((*nodes, Surveyed(node="node-3", runtime=True))) is Transport.TCP
