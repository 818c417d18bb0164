"""From the ranks' logs to the record of a launch, and what makes a launch worthless."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING

from vsphere_ml.bench.launch import causes
from vsphere_ml.bench.model.record import (
    LocalSteps,
    Outcome,
    RegimeResult,
    Run,
    Steps,
    SweepPoint,
    Verdict,
    Workload,
    World,
)
from vsphere_ml.bench.proof import channels, ledger, marking, paths, ucx
from vsphere_ml.bench.proof import ranks as proof
from vsphere_ml.bench.proof.contention import contention
from vsphere_ml.bench.proof.launch_context import blank, cpu_training, environment, method, version_mismatches
from vsphere_ml.core.diagnostics import Diagnostic
from vsphere_ml.core.errors import BenchError, GuestError, PlacementError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.bench.model.job import Job
    from vsphere_ml.bench.model.rank_log import RankLog
    from vsphere_ml.bench.model.record import Configuration, Path, Proof
    from vsphere_ml.bench.proof.launch_context import LaunchContext
    from vsphere_ml.bench.stats.stop import Stop
    from vsphere_ml.core.errors import VsmlError


def run(context: LaunchContext, logs: Sequence[RankLog], log: str, stop: Stop | None = None) -> Run:
    """Return the record of a launch that ended well; it is invalid when a proof fails."""
    job = context.job
    lost = _lost_nodes(job, logs)
    if job.least_nodes:
        logs = [each for each in logs if each.ended]
    _complete(job, logs, log)
    went, by = _prove_path(context, logs, log)
    proofs = tuple(each for each in (*proof.proofs(job, logs), by, context.clean) if each is not None)
    counts, marked = ledger.count(job, logs), marking.count(job, logs, context.priority)
    failed = [each for each in proofs if each.verdict is Verdict.NO]
    return replace(
        blank(context),
        outcome=Outcome.INVALID if failed else Outcome.COMPLETE,
        reason="; ".join(f"{each.name}: {each.evidence}" for each in failed),
        configuration=_with_parameters(job, logs),
        environment=environment(context, logs, log),
        method=method(job, logs, stop),
        placement=proof.places(logs, context.machines),
        steps=None if failed or lost else _steps(job.configuration, logs),
        worlds=_worlds(logs),
        sweep=() if failed else _sweep(logs),
        traffic=counts,
        priorities=marked,
        regime=None if failed else _regime(logs),
        contention=contention(job, logs, context.cpu_times),
        proofs=proofs,
        paths=went,
        diagnostics=(
            *context.measured.diagnostics,
            *proof.shared_hosts(job, context.hosts),
            *cpu_training(context),
            *version_mismatches(context),
            *_diverged_weights(job, logs),
            *_stopped_early(job, stop),
            *lost,
            *ledger.diagnose(counts),
            *marking.diagnose(marked),
        ),
    )


def _prove_path(context: LaunchContext, logs: Sequence[RankLog], log: str) -> tuple[tuple[Path, ...], Proof | None]:
    """Return what the bytes went by between nodes, and whether that is what was asked for."""
    job = context.job
    if job.over_ucx and (lanes := ucx.of_ucx(log)):
        return lanes, ucx.prove_ucx(job, logs, lanes)
    went = channels.of_nccl(log) or paths.of_sockets(job, logs)
    return went, paths.proof(job, logs, went, context.surveyed, log)


def link_run(context: LaunchContext) -> Run:
    """Return the record of a launch that only measured the links."""
    return replace(
        blank(context),
        method=method(context.job, (), None),
        proofs=(context.clean,) if context.clean else (),
        diagnostics=(*context.measured.diagnostics, *proof.shared_hosts(context.job, context.hosts)),
    )


def failed_run(context: LaunchContext, error: VsmlError) -> Run:
    """Return the record of a launch that gave nothing to measure."""
    return _without_figures(context, Outcome.FAILED, error.message)


def refused_run(context: LaunchContext, error: VsmlError) -> Run:
    """Return the record of a launch that was not begun; a guest that was lost is a failure, and no refusal."""
    if isinstance(error, GuestError):
        return failed_run(context, error)
    cause = Diagnostic(code=error.code, target=error.target, message=error.message, hint=error.hint)
    return replace(_without_figures(context, Outcome.REFUSED, error.message), diagnostics=(cause,))


def cut(context: LaunchContext, why: str) -> Run:
    """Return the record of a launch whose end vsml has not seen."""
    return _without_figures(context, Outcome.CUT, why)


def _without_figures(context: LaunchContext, outcome: Outcome, why: str) -> Run:
    proofs = (context.clean,) if context.clean else ()
    return replace(blank(context), outcome=outcome, reason=why, proofs=proofs)


def invalid_reason(run: Run) -> BenchError | None:
    """Return what makes a launch worthless whatever its speed; None when nothing does."""
    wrong = next((each for each in run.proofs if each.verdict is Verdict.NO), None)
    if wrong is None:
        return None
    if wrong.name == proof.PLACEMENT:
        return PlacementError(
            f"the ranks did not run where they were asked to: {wrong.evidence}",
            code="bench.placement",
            target=run.run_id,
            hint="`vsml bench report -o json` has each rank's place; look at the launcher's host file and its version",
        )
    if wrong.name == paths.PATH:
        return BenchError(
            f"{run.configuration.transport.value} was asked for and not used: {wrong.evidence}",
            code="bench.path",
            target=run.run_id,
            hint="`vsml verify` tells each node's RDMA and GPUDirect; the record has the log's lines",
        )
    return BenchError(
        f"the launch is invalid, whatever its speed: {wrong.evidence}", code="bench.not-in-sync", target=run.run_id
    )


def ended_badly(job: Job, status: int, log: str, faults: Sequence[str] = ()) -> BenchError:
    """Return the error for a launcher that ended with another status than 0; `troubles` are the guest's own."""
    limit = f" (its limit of {job.limit_s:g} s passed)" if status == 124 else ""  # noqa: PLR2004 - timeout(1)'s status
    cause = causes.find_cause(log)
    why = "".join(f": {each}" for each in ([cause.why] if cause else faults))
    return BenchError(
        f"{job.configuration.launcher} on {job.nodes[0].name} ended with status {status}{limit}{why}",
        code="bench.launch-failed",
        target=job.nodes[0].name,
        hint=cause.advise() if cause else "the first error of its last lines is usually the one to fix",
        details=causes.last_lines(log),
    )


def _complete(job: Job, logs: Sequence[RankLog], log: str) -> None:
    """Raise BenchError `bench.no-samples` when ranks are missing or did not come to their end."""
    if job.configuration.workload is Workload.SCRIPT:
        return
    if not logs or not all(each.ended for each in logs):
        silent = [str(each.rank) for each in logs if not each.ended]
        what = f"ranks {', '.join(silent)} did not come to their end" if silent else "no rank reported anything"
        raise BenchError(
            f"{what}, though {job.configuration.launcher} ended well",
            code="bench.no-samples",
            target=job.nodes[0].name,
            details=causes.last_lines(log),
        )


def _lost_nodes(job: Job, logs: Sequence[RankLog]) -> tuple[Diagnostic, ...]:
    """Return which nodes an elastic job lost."""
    ended = {each.node for each in logs if each.ended}
    lost = [node.name for node in job.nodes if node.name not in ended]
    if not job.least_nodes or not lost:
        return ()
    message = f"lost on the way; the job went on with {len(job.nodes) - len(lost)} of {len(job.nodes)} nodes"
    return tuple(Diagnostic(code="bench.lost-node", target=name, message=message) for name in lost)


def _diverged_weights(job: Job, logs: Sequence[RankLog]) -> tuple[Diagnostic, ...]:
    """Return a remark where weights are no numbers any more: fp16 overflows where few images make large gradients."""
    if all(each.finite for each in logs):
        return ()
    message = "the weights became NaN or infinite: whether the ranks stayed in sync is unknown"
    hint = "more --batch, a larger --image-size, or --compression fp32"
    return (Diagnostic(code="bench.not-finite", target=job.run_id, message=message, hint=hint),)


def _stopped_early(job: Job, stop: Stop | None) -> tuple[Diagnostic, ...]:
    if stop is None:
        return ()
    return (Diagnostic(code="bench.stopped", target=job.run_id, message=f"ended before its last step: {stop.value}"),)


def _with_parameters(job: Job, logs: Sequence[RankLog]) -> Configuration:
    parameters = logs[0].model.get("parameters") if logs else None
    return replace(job.configuration, parameters=int(parameters)) if parameters else job.configuration


def _steps(asked: Configuration, logs: Sequence[RankLog]) -> Steps | None:
    if not logs or not logs[0].step_s or len({len(each.step_s) for each in logs}) > 1:
        return None
    count = len(logs[0].step_s)
    return Steps(
        step_s=_by_rank([each.step_s for each in logs], count),
        input_s=_by_rank([each.input_s for each in logs], count),
        work_s=_by_rank([each.work_s for each in logs], count),
        compute_s=_by_rank([each.compute_s for each in logs], count),
        loss=tuple(tuple(map(_parse_loss, row)) for row in _by_rank([each.loss for each in logs], count)),
        wall_s=_wall(logs),
        local=_local_steps(logs),
        samples_per_step=asked.batch,
    )


def _by_rank(rows: Sequence[Sequence[float]], count: int) -> tuple[tuple[float, ...], ...]:
    """Return the rows where every rank has so many values; nothing otherwise."""
    return tuple(map(tuple, rows)) if all(len(row) == count for row in rows) else ()


def _parse_loss(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _wall(logs: Sequence[RankLog]) -> tuple[float, ...]:
    known = tuple(each.wall_s for each in logs if each.wall_s is not None)
    return known if len(known) == len(logs) else ()


def _local_steps(logs: Sequence[RankLog]) -> LocalSteps | None:
    """Return the local steps that all ranks made."""
    count = len(logs[0].local)
    if not count or any(len(each.local) != count for each in logs):
        return None
    exchanges = [[exchange for *_, exchange in each.local if exchange is not None] for each in logs]
    return LocalSteps(
        period_s=tuple(tuple(period for period, *_ in each.local) for each in logs),
        compute_s=tuple(tuple(compute for _, compute, _ in each.local) for each in logs),
        exchange_s=_by_rank(exchanges, count),
    )


def _worlds(logs: Sequence[RankLog]) -> tuple[World, ...]:
    """Return how an elastic job's ranks became fewer or more; empty for a job of fixed size."""
    if not logs or not logs[0].worlds:
        return ()
    starts = [start for *_, start in logs[0].worlds]
    ends = [*starts[1:], len(logs[0].step_s)]
    return tuple(
        World(ranks=ranks, first_step=step, step_s=tuple(logs[0].step_s[start:end]))
        for (ranks, step, start), end in zip(logs[0].worlds, ends, strict=True)
    )


def _sweep(logs: Sequence[RankLog]) -> tuple[SweepPoint, ...]:
    """Return each size's times, those of the slowest rank in each repeat."""
    points = zip(*(each.sweep for each in logs), strict=True)
    iterations = logs[0].iterations_s if logs else {}
    return tuple(
        SweepPoint(
            size_bytes=ranks[0][0],
            time_s=_slowest_steps([each[1] for each in ranks]),
            iterations_s=iterations.get(ranks[0][0], ()),
        )
        for ranks in points
    )


def _regime(logs: Sequence[RankLog]) -> RegimeResult | None:
    """Return the first rank's result of the training; how far they were behind is the mean of all."""
    if not logs or not all(each.regime for each in logs):
        return None
    first = logs[0].regime
    return RegimeResult(
        size_bytes=int(first["size_bytes"]),
        samples=int(first["samples"]),
        loss=_parse_loss(first["loss"]),
        behind=fmean(each.regime["behind"] for each in logs),
    )


def _slowest_steps(ranks: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    return tuple(max(times) for times in zip(*ranks, strict=True))
