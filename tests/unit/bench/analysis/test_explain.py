"""Each cause is made by hand in an otherwise sound record, and named; the sound record has none of them."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path as Folder
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from tests.unit.bench import synthetic
from tests.unit.bench.synthetic import Machine
from vsphere_ml.bench.analysis.explain import explain
from vsphere_ml.bench.analysis.study import BoundsCheck, study
from vsphere_ml.bench.gate.gate import failure, gate
from vsphere_ml.bench.imports import log
from vsphere_ml.bench.imports.files import one
from vsphere_ml.bench.imports.parsed import ImportOptions
from vsphere_ml.bench.model.record import LinkResult, Outcome, Path, Proof, Run, Steps, SweepPoint, Verdict, Workload
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.report.report_content import story
from vsphere_ml.cli.views.bench import run as run_view
from vsphere_ml.core.diagnostics import Diagnostic, Severity
from vsphere_ml.flows.bench.series import BenchResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.golden import Golden


CASES = Folder(__file__).parents[3] / "cases" / "imports"
QUIET = Machine(cv=0.005)
SOUND = synthetic.record(machine=QUIET, nodes=2, launches=3)


def told(runs: tuple[Run, ...]) -> dict[str, Diagnostic]:
    return {each.code: each for each in explain(study(runs))}


def each_run(change: Callable[[Run], Run], runs: tuple[Run, ...] = SOUND) -> tuple[Run, ...]:
    return tuple(change(run) for run in runs)


def test_a_sound_record_is_inside_its_bracket_and_only_hears_of_larger_frames() -> None:
    assert set(told(SOUND)) == {"bench.network", "bench.mtu"}
    assert "5.2 % more" in told(SOUND)["bench.mtu"].message


def test_a_record_made_slower_than_the_wire_allows_is_below_the_floor(golden: Golden) -> None:
    slow = synthetic.record(machine=replace(QUIET, overlap=-1.0), nodes=2, launches=3)
    golden(told(slow)["bench.below-floor"].target)
    assert study(slow).scalings[1].bounds_check is BoundsCheck.BELOW


def test_an_efficiency_that_cannot_be_is_above_the_ceiling() -> None:
    def slower_base(run: Run) -> Run:
        if run.configuration.nodes > 1 or run.steps is None:
            return run
        return replace(run, steps=Steps(step_s=tuple(tuple(t * 3 for t in row) for row in run.steps.step_s)))

    assert "bench.above-ceiling" in told(each_run(slower_base))


def test_the_straggler_is_named_by_its_node_once() -> None:
    runs = synthetic.record(machine=replace(QUIET, slow_rank=1), nodes=3, launches=3)
    causes = [each for each in explain(study(runs)) if each.code == "bench.straggler"]
    assert [each.target for each in causes] == ["node-1"]
    assert "1.4" in causes[0].message


def test_a_slow_link_is_found_among_others() -> None:
    links = tuple(
        LinkResult(
            tool="iperf3", sender=f"node-{a}", receiver=f"node-{b}", bytes_per_s=50e6 if (a, b) == (2, 0) else 117e6
        )
        for a in range(3)
        for b in range(3)
        if a != b
    )
    causes = [
        each for each in explain(study((replace(SOUND[0], link_results=links),))) if each.code == "bench.slow-link"
    ]
    assert [each.target for each in causes] == ["node-2 to node-0"]


def test_a_link_that_was_measured_often_is_told_once_by_its_median() -> None:
    rates = (100e6, 117e6, 118e6)
    runs = tuple(
        replace(run, link_results=(LinkResult(tool="iperf3", sender="a", receiver="b", bytes_per_s=rate),))
        for run, rate in zip(SOUND, rates, strict=False)
    )
    assert [each.bytes_per_s for each in study(runs).links] == [117e6]


def test_links_that_differ_a_little_are_not_blamed() -> None:
    links = tuple(
        LinkResult(tool="iperf3", sender="node-0", receiver=f"node-{at}", bytes_per_s=117e6 - at * 4e6)
        for at in range(1, 5)
    )
    assert "bench.slow-link" not in told((replace(SOUND[0], link_results=links),))


def test_a_link_slower_than_its_line_rate_is_found() -> None:
    def shaped(run: Run) -> Run:
        return replace(run, link=replace(run.link, calibrated_bytes_per_s=0.6e9))

    cause = told(each_run(shaped))["bench.slow-link"]
    assert "51.0 %" in cause.message


def test_a_collective_that_leaves_the_link_idle_is_found() -> None:
    def half(run: Run) -> Run:
        return replace(
            run,
            sweep=tuple(
                SweepPoint(size_bytes=each.size_bytes, time_s=tuple(t * 2 for t in each.time_s)) for each in run.sweep
            ),
        )

    assert "another backend" in told(each_run(half))["bench.collective"].hint


def test_times_that_lie_in_two_heaps_are_told() -> None:
    def heaps(run: Run) -> Run:
        return replace(
            run,
            sweep=tuple(
                SweepPoint(
                    size_bytes=each.size_bytes, time_s=tuple(t * (1 + at % 3) for at, t in enumerate(each.time_s))
                )
                for each in run.sweep
            ),
        )

    assert "bench.spread" in told(each_run(heaps))


def channel(carrier: str) -> tuple[Path, ...]:
    return (Path(channel="00", sender="0", receiver="1", carrier=carrier, evidence="-"),)


@pytest.mark.parametrize(
    ("transport", "carrier", "code"),
    [
        (Transport.ROCE, "NET/Socket", "bench.wrong-path"),
        (Transport.GPUDIRECT, "NET/Socket", "bench.wrong-path"),
        (Transport.GPUDIRECT, "NET/IB", "bench.no-gpudirect"),
        (Transport.GPUDIRECT, "NET/IB/GDRDMA", None),
        (Transport.ROCE, "NET/IB", None),
        (Transport.TCP, "NET/Socket", None),
        (Transport.GPUDIRECT, "P2P", None),
        (Transport.GPUDIRECT, "gloo/tcp", None),
        (Transport.GPUDIRECT, "NET/UCX", None),
    ],
)
def test_another_path_than_was_asked_for_is_told(transport: Transport, carrier: str, code: str | None) -> None:
    def by(run: Run) -> Run:
        return replace(run, configuration=replace(run.configuration, transport=transport), paths=channel(carrier))

    paths = set(told(each_run(by))) & {"bench.wrong-path", "bench.no-gpudirect"}
    assert paths == ({code} if code else set())


SILENT = "the log tells no channel between nodes"


def without_path(run: Run, transport: Transport = Transport.ROCE) -> Run:
    """Return the launch as it is recorded when NCCL's log has no line of a channel."""
    proofs = tuple(each for each in run.proofs if each.name != "path")
    unknown = Proof(name="path", verdict=Verdict.UNKNOWN, evidence=SILENT)
    asked = replace(run.configuration, transport=transport if run.configuration.nodes > 1 else Transport.TCP)
    return replace(run, configuration=asked, proofs=(*proofs, unknown), paths=())


def test_a_path_that_was_asked_for_and_is_not_proven_is_told_everywhere(golden: Golden) -> None:
    runs = each_run(without_path)
    diagnostic = told(runs)["bench.path-unproven"]
    golden(diagnostic.message)
    assert "--workload nccl --transport roce" in diagnostic.hint
    verdicts = [each for each in story(study(runs)).verdicts if "2 nodes" in each]
    assert len(verdicts) == 2
    golden(verdicts)
    shown = Console(file=io.StringIO(), width=400)
    shown.print(run_view.text(BenchResult(cluster="c", folder=Folder("record"), runs=runs)))
    assert diagnostic.message in shown.file.getvalue()  # type: ignore[attr-defined]


def test_a_gate_cannot_tell_of_a_path_that_is_not_proven() -> None:
    checks = gate(each_run(without_path), None, ())
    unknown = [each for each in checks if each.severity is Severity.UNKNOWN]
    assert {(each.kind, each.message) for each in unknown} == {("path", f"not proven: {SILENT}")}
    assert len(unknown) == 6
    error = failure(checks)
    assert error is not None
    assert (error.code, error.status) == ("bench.path-unproven", 3)


def test_a_gate_says_so_of_tcp_and_of_imported_logs_and_opens(golden: Golden) -> None:
    tcp = each_run(lambda run: without_path(run, Transport.TCP))
    imported = each_run(lambda run: replace(without_path(run), source="nccl-tests", proofs=()))
    for runs, why in ((tcp, SILENT), (imported, "nccl-tests tells nothing of it")):
        checks = gate(runs, None, ())
        assert failure(checks) is None
        assert sum(each.message.endswith(why) for each in checks) == 6
        golden({each.message for each in checks if each.message.endswith(why)})
    golden(told(imported)["bench.path-unproven"].message)


def test_links_and_what_did_not_end_well_have_no_path_to_prove() -> None:
    failed = each_run(lambda run: replace(without_path(run), outcome=Outcome.FAILED))
    linked = each_run(lambda run: replace(run, configuration=replace(run.configuration, workload=Workload.LINK)))
    assert "bench.path-unproven" not in {**told(failed), **told(linked)}


@pytest.mark.parametrize(("name", "code"), [("in_sync", "bench.out-of-sync"), ("placement", "bench.wrong-placement")])
def test_a_proof_that_fails_comes_first(name: str, code: str) -> None:
    bad = replace(SOUND[-1], proofs=(Proof(name=name, verdict=Verdict.NO),), outcome=Outcome.INVALID)
    assert explain(study((*SOUND, bad)))[0].code == code


def test_launches_that_failed_are_told_with_their_reason_and_how_many(golden: Golden) -> None:
    failed = tuple(
        replace(run, outcome=Outcome.FAILED, reason="status 1", steps=None)
        for run in synthetic.record(nodes=1, launches=3)
    )
    (diagnostic,) = explain(study(failed))
    assert diagnostic.code == "bench.failed"
    golden(diagnostic.message)


def test_what_was_noted_while_it_ran_and_is_worth_mending_is_told_once() -> None:
    lost = Diagnostic(code="bench.lost-node", target="node-2", message="lost on the way")
    stopped = Diagnostic(code="bench.stopped", target="r", message="the time is up")
    runs = tuple(replace(run, diagnostics=(lost, stopped)) for run in synthetic.record(nodes=2, launches=2))
    texts = [each.code for each in explain(study(runs))]
    assert texts.count("bench.lost-node") == 1
    assert "bench.stopped" not in texts


def test_vms_of_one_host_are_no_inter_host_figure() -> None:
    def together(run: Run) -> Run:
        return replace(run, placement=tuple(replace(each, host="esx-0") for each in run.placement))

    assert "esx-0" in told(each_run(together))["bench.one-host"].message


def test_what_one_launch_cannot_tell_and_what_is_too_noisy() -> None:
    assert "bench.one-launch" in told(SOUND[:1])
    noisy = synthetic.record(machine=Machine(cv=1.0 / 3), nodes=1, launches=3, seed=7)
    assert "bench.noisy" in told(noisy)


def imported(name: str) -> Run:
    return one(log.read([(CASES / name).read_bytes()], name), ImportOptions(nodes=1), "2026-01-31T12:00:00Z")


def test_of_another_tools_log_nobody_is_told_to_run_more_steps(golden: Golden) -> None:
    single = told((imported("tf-cnn.txt"),))["bench.not-settled"]
    golden(single.message)
    golden(single.hint)
    series = imported("horovod.txt")
    assert series.steps is not None
    cut = tuple(row[:5] for row in series.steps.step_s)
    short = told((replace(series, steps=replace(series.steps, step_s=cut)),))
    golden(short["bench.not-settled"].hint)
    golden(short["bench.one-launch"].hint)


def test_launches_that_are_not_complete_are_in_no_figure() -> None:
    bad = replace(SOUND[0], outcome=Outcome.FAILED, steps=Steps(step_s=((1e9,),)))
    seen = study((bad, *SOUND[1:]))
    assert seen.skipped == (bad,)
    assert seen.scalings[0].point.step.value < 1


def test_without_a_base_there_is_no_efficiency() -> None:
    alone = study(tuple(run for run in SOUND if run.configuration.nodes == 2))
    assert alone.scalings[0].efficiency is None
    assert alone.scalings[0].bounds_check is BoundsCheck.UNKNOWN


def test_the_base_of_rdma_is_one_node_whatever_its_transport() -> None:
    def roce(run: Run) -> Run:
        nodes = run.configuration.nodes
        return run if nodes == 1 else replace(run, configuration=replace(run.configuration, transport=Transport.ROCE))

    assert study(each_run(roce)).scalings[1].efficiency is not None
