"""Answers of commands that ask a site: each keeps to its schema. Those of all others are checked where they are run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.fakes.site import FakeVCenter
from tests.unit.bench import synthetic
from tests.unit.cli.views.cluster.test_plan import EXAMPLES
from tests.unit.cli.views.cluster.test_proposal import guest, pending
from tests.unit.cli.views.cluster.test_report import FAULT, PARTIAL
from tests.unit.cli.views.guests.test_verify import evidence
from tests.unit.cli.views.test_screens import FREE, SPEC, TAKEN, seen_status, standing
from tests.unit.flows.hosts_rig import existing
from vsphere_ml.bench.model.record import Proof, Verdict
from vsphere_ml.bench.model.user_job import FoundJob, JobRecord, JobState
from vsphere_ml.cli.terminal import Answer
from vsphere_ml.cli.views.bench import run as bench_view
from vsphere_ml.cli.views.cluster import capacity, clusters, log, plan, proposal, report, status
from vsphere_ml.cli.views.guests import command, guests, verify
from vsphere_ml.cli.views.jobs import job
from vsphere_ml.cli.views.layout import envelope
from vsphere_ml.cli.views.site import ats, doctor
from vsphere_ml.cli.wiring import journal
from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.core.placement.explain import explain
from vsphere_ml.core.placement.headroom import headroom
from vsphere_ml.core.placement.solve import find_solution, solve
from vsphere_ml.core.plan.diff import diff
from vsphere_ml.core.plan.plan import Plan, Stage
from vsphere_ml.core.report.clusters import list_clusters
from vsphere_ml.flows.bench.series import BenchResult
from vsphere_ml.flows.guests.command import AnswerGroup, CommandResult
from vsphere_ml.flows.guests.configure import ConfigureResult
from vsphere_ml.flows.guests.verify import Verification
from vsphere_ml.flows.jobs.fetch import FetchedJob
from vsphere_ml.flows.jobs.find import JobList
from vsphere_ml.flows.jobs.follow import JobReport
from vsphere_ml.flows.jobs.stop import StoppedJob
from vsphere_ml.flows.profiles import profiles

if TYPE_CHECKING:
    from collections.abc import Callable

RECORD = JobRecord(
    run_id="train-0a1b2c",
    cluster="train",
    command=("train.py",),
    launcher="torchrun",
    backend="nccl",
    transport="tcp",
    ranks_per_node=1,
    nodes=(("node-1", "10.0.0.11"), ("node-2", "10.0.0.12")),
)
FETCHED = FetchedJob(record=RECORD, files={"node-1": ("job.log",)}, errors={"node-2": FAULT})
ENDED = FoundJob(record=RECORD, state=JobState.ENDED, status=0, ended_s=1_800_000_000)
PROVEN = JobReport(job=ENDED, proofs=(Proof(name="placement", verdict=Verdict.YES),))
PENDING = pending(replace(guest("node-1", "no such file"), error=FAULT), guest("node-2", "x"), after_boot=("node-3",))
BENCH = BenchResult(cluster="train", folder=Path("bench"), runs=(synthetic.train(2, steps=3),))
EVERY_CHANGE = Plan(stages=(Stage(title="clone", changes=EXAMPLES),))


def explained() -> proposal.ExplainedProposalData:
    shown = proposal.fields(diff(SPEC, solve(SPEC, FREE), FREE), PENDING, "")
    return {**shown, "explained": explain(find_solution(SPEC, FREE))}


def logged(tmp_path: Path) -> log.LogData:
    file = tmp_path / "changes.jsonl"
    book = journal.Journal(file, journal.Author(command="provision", cluster="train", vcenter="lab default"))
    for each in EXAMPLES:
        (number,) = book.begin([each])
        if each is not EXAMPLES[0]:
            book.end([(number, each, FAULT if each is EXAMPLES[1] else None)])
    return log.data(file, *journal.read_entries(file, "train"))


ANSWERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "bench run": ("bench run", lambda _: bench_view.answer(BENCH).fields()),
    "capacity": ("capacity", lambda _: capacity.data(SPEC, headroom(SPEC, FREE))),
    "configure": (
        "configure",
        lambda _: guests.data(ConfigureResult(plan=PENDING, applied=False, guests=PENDING.guests)),
    ),
    "destroy": ("destroy", lambda _: report.data(replace(PARTIAL, command="destroy", only=("node-1",)))),
    "doctor": ("doctor", lambda _: doctor.data([doctor.failed_check("sign-in", FAULT)])),
    "enable-ats": ("enable-ats", lambda _: ats.data(existing(2).run(), lab=False)),
    "enable-ats --check": ("enable-ats", lambda _: ats.data(existing(2).run(dry_run=True), lab=True)),
    "inventory": ("inventory", lambda _: TAKEN),
    "job fetch": ("job fetch", lambda _: job.fetch_data(FETCHED, Path("results"))),
    "job list": (
        "job list",
        lambda _: job.list_data(JobList(cluster="train", jobs=(ENDED,), errors={"node-2": FAULT})),
    ),
    "job logs": ("job logs", lambda _: job.report_data(PROVEN)),
    "job logs of one that runs": ("job logs", lambda _: job.job_data(replace(ENDED, status=None, ended_s=None))),
    "job run": ("job run", lambda _: job.report_data(PROVEN)),
    "job run --detach": ("job run", lambda _: RECORD),
    "job stop": (
        "job stop",
        lambda _: job.stop_data(StoppedJob(record=RECORD, ended={"node-1": 2}, delete=True, errors={"node-2": FAULT})),
    ),
    "list": ("list", lambda _: clusters.data(standing(), list_clusters(standing()))),
    "log": ("log", logged),
    "plan": ("plan", lambda _: explained()),
    "plan without guests": ("plan", lambda _: proposal.fields(EVERY_CHANGE, None, "--skip-guests")),
    "profiles": ("profiles", lambda _: profiles(FakeVCenter(TAKEN), None)),
    "provision": ("provision", lambda _: report.data(replace(PARTIAL, plan=EVERY_CHANGE))),
    "provision --dry-run": ("provision", lambda _: proposal.fields(EVERY_CHANGE, PENDING, "")),
    "run": (
        "run",
        lambda _: command.data(
            CommandResult(
                cluster="train",
                groups=(AnswerGroup(nodes=("node-1",), answer=CommandAnswer(0, "x")),),
                errors={"node-2": FAULT},
            )
        ),
    ),
    "status": ("status", lambda _: status.data(replace(seen_status(), placement_error=FAULT))),
    "topology": ("topology", lambda _: FREE),
    "verify": (
        "verify",
        lambda _: verify.data(Verification(cluster="train", evidence=evidence(2), errors={"node-3": FAULT})),
    ),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_an_answer_keeps_to_its_schema(case: str, tmp_path: Path) -> None:
    name, make = ANSWERS[case]
    text = envelope.success(name, Answer(data=make(tmp_path)), ())  # which is checked wherever tests run
    assert json.loads(text)["data"] is not None


def test_a_plan_says_of_every_change_what_it_is() -> None:
    stages = plan.data(EVERY_CHANGE)["stages"]
    assert [each["change"] for each in stages[0]["changes"]] == [type(each).__name__ for each in EXAMPLES]
