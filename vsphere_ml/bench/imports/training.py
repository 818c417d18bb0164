"""Horovod's synthetic benchmarks and tf_cnn_benchmarks: rates printed by rank 0."""

from __future__ import annotations

import re
from statistics import fmean
from typing import TYPE_CHECKING

from vsphere_ml.bench.imports.parsed import (
    ImportOptions,
    ParsedLog,
    differs,
    every,
    joined_runs_error,
    nothing,
    number,
    other_statistic,
    parse_integer,
    truncated_diagnostics,
)
from vsphere_ml.bench.model.record import Workload
from vsphere_ml.core.diagnostics import Diagnostic
from vsphere_ml.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

HOROVOD = "horovod synthetic benchmark"
TF_CNN = "tf_cnn_benchmarks"
# `Iter #0: 310.0 img/sec per GPU`: %.1f in each program; forks print the time of an iteration after it.
_ITERATION = re.compile(r"Iter #(\d{1,6}): (\d+\.\d) img/sec per \w+(?:\s*$|, )")
_HOROVOD_TOTAL = re.compile(r"Total img/sec on (\d{1,6}) \w+(?:\(s\))?:\s*(\d+\.\d)(?!\d)")
# No line of the output has it, but the command has, or a program that prints its options.
_FP16 = re.compile(r"(?:^|\s)--fp16-allreduce\b|\bfp16_allreduce=True\b")
_CUT = re.compile(r"Iter #\d+:")
_TOTAL_LINE = r"^\s*total images/sec:\s*(\d+\.\d\d)\s*$"
# How several processes make one run (benchmark_cnn.py): by these, or with --job_name, which alone prints `Sync:`.
_BETWEEN_PROCESSES = frozenset({"horovod", "distributed_replicated", "distributed_all_reduce", "collective_all_reduce"})
_SYNC = re.compile(r"^\s*Sync:\s")
_ASYNCHRONOUS = re.compile(r"^\s*Sync:\s+False\b")
_ALIKE = 0.01  # by which workers' accounts of one run's total differ at most
_RANK_0 = Diagnostic(
    code="import.one-rank",
    target=HOROVOD,
    message="rank 0 alone was timed, each time is the mean of an iteration's batches; no straggler can be named",
)
_TOTAL = Diagnostic(
    code="import.total",
    target=TF_CNN,
    message="the tool's total is one figure for the run: it gives no interval",
)


def is_horovod(lines: Sequence[str]) -> bool:
    return any("img/sec per" in line for line in lines)


def is_tf_cnn(lines: Sequence[str]) -> bool:
    return any("total images/sec:" in line for line in lines)


def horovod(lines: Sequence[str], asked: ImportOptions) -> ParsedLog:
    """Return a step time for each iteration: its rate is that of one rank, over a number of batches."""
    iterations = [match for line in lines if (match := _ITERATION.search(line))]
    numbers = [int(match[1]) for match in iterations]
    if numbers != sorted(set(numbers)):
        raise joined_runs_error(HOROVOD, "its iterations begin anew")
    batch = _one(HOROVOD, "batch size", every(r"^\s*Batch size:\s*(\d+)\s*$", lines))
    rates = [value for match in iterations if (value := number(match[2])) is not None]
    if not rates or batch is None:
        raise nothing(HOROVOD, "iterations" if batch is not None else "batch size")
    ranks = _one(HOROVOD, "number of ranks", every(r"Number of [CG]PUs:\s*(\d+)\s*$", lines))
    _agree(HOROVOD, ranks, asked)
    gaps = _gaps(lines, numbers)
    totals = [(int(match[1]), float(match[2])) for line in lines if (match := _HOROVOD_TOTAL.search(line))]
    _refuse_other_total(totals, ranks or asked.ranks, () if gaps else rates)
    return ParsedLog(
        tool=HOROVOD,
        workload=Workload.TRAIN,
        ranks=ranks,
        model=_model(HOROVOD, lines),
        batch=batch,
        step_s=tuple(batch / rate for rate in rates),
        gradients="fp16" if any(_FP16.search(line) for line in lines) else "",
        averaged=True,
        diagnostics=(_RANK_0, *gaps),
    )


def _gaps(lines: Sequence[str], numbers: Sequence[int]) -> tuple[Diagnostic, ...]:
    """Return what shows that iterations are missing: one that was cut or skipped, or no total at the end."""
    lost = numbers[-1] + 1 - len(numbers) + sum(bool(_CUT.search(each)) for each in lines) - len(numbers)
    ended = any("otal img/sec on" in line for line in lines)
    gone = Diagnostic(
        code="import.left-out",
        target=HOROVOD,
        message=f"{lost} iterations are missing or cut, and left out",
        hint="give the whole output",
    )
    return (*((gone,) if lost else ()), *(() if ended else truncated_diagnostics(HOROVOD, "its total")))


def _refuse_other_total(totals: Sequence[tuple[int, float]], ranks: int | None, rates: Sequence[float]) -> None:
    """Raise ConfigError where a total is not over these ranks, or not ranks times the mean of these iterations.

    The programs print %.1f of each (examples/*/*_synthetic_benchmark.py), so the sum is off by half a unit each rank.
    """
    for count, total in totals:
        if ranks is not None and count != ranks:
            raise differs(HOROVOD, f"its total is on {count} ranks, and it ran on {ranks}", "check --ranks")
        if rates and abs(total - count * fmean(rates)) > 0.1 * (count + 1):
            mean = f"{count} times {fmean(rates):.1f}"
            raise differs(HOROVOD, f"its total is {total:g} img/sec, its iterations make {mean}")


def tf_cnn(lines: Sequence[str], asked: ImportOptions) -> ParsedLog:
    """Return the one step time that follows from the total: it is over all workers, each of which may print it."""
    _refuse_no_training(lines)
    totals = [value for each in every(_TOTAL_LINE, lines) if (value := number(each)) is not None]
    everywhere = _one(TF_CNN, "global batch size", every(r"^\s*Batch size:\s*(\d+) global", lines))
    each = _one(TF_CNN, "batch size per device", every(r"^\s*(\d+)(?:\.0)? per device", lines))
    if not totals or everywhere is None:
        raise nothing(TF_CNN, "total images/sec with the global batch size")
    updates = {update.lower() for update in every(r"^\s*Variables:\s*(\w+)", lines)}
    _refuse_several_runs(totals, updates, workers=any(_SYNC.match(line) for line in lines))
    ranks, batch = _split_batch(everywhere, each, asked, alone=_lists_one_process(lines, updates))
    return ParsedLog(
        tool=TF_CNN,
        workload=Workload.TRAIN,
        ranks=ranks,
        model=_model(TF_CNN, lines),
        batch=batch,
        step_s=(ranks * batch / totals[0],),
        averaged=True,
        diagnostics=(_TOTAL,),
    )


def _refuse_no_training(lines: Sequence[str]) -> None:
    """Raise ConfigError where no gradients are exchanged in a step (--eval, --forward_only), or no step is common."""
    for mode in every(r"^\s*Mode:\s*(\S.*)", lines):
        if "train" not in mode.lower():
            raise other_statistic(TF_CNN, f"the rate of {mode[:40]}, which is no training", "run it without that")
    if any(_ASYNCHRONOUS.search(line) for line in lines):
        raise other_statistic(TF_CNN, "asynchronous updates, which have no step in common", "--cross_replica_sync")


def _refuse_several_runs(totals: Sequence[float], updates: set[str], *, workers: bool) -> None:
    """Raise ConfigError where several totals are not the accounts that workers give of one run's."""
    if max(totals) > min(totals) * (1 + _ALIKE):
        raise joined_runs_error(TF_CNN, f"its totals are {min(totals):g} and {max(totals):g} images/s")
    if len(totals) > 1 and not workers and not updates & _BETWEEN_PROCESSES:
        raise joined_runs_error(
            TF_CNN, f"it has {len(totals)} totals, and nothing says that its processes shared the work"
        )


def _lists_one_process(lines: Sequence[str], updates: set[str]) -> bool:
    """Return whether batch size and devices can be those of one Horovod process, and the total is of all.

    tf_cnn_benchmarks lists `horovod/gpu:0` and so on and multiplies the batch size, from its first commit with Horovod
    (2018-01-26); the forks before it, with which horovod's docs/benchmarks.rst gives a total over 16 GPUs, do not.
    """
    return "horovod" in updates and any(re.match(r"\s*Devices:(?!.*horovod/)", line) for line in lines)


def _split_batch(everywhere: int, each: int | None, asked: ImportOptions, *, alone: bool) -> tuple[int, int]:
    """Return the number of ranks and the batch of each. Raises ConfigError when they do not make up the whole.

    `alone`: what is said to be everywhere can be one rank's.
    """
    ranks = asked.ranks or (everywhere // each if each and not alone else None)
    if ranks is None:
        raise ConfigError(
            f"{TF_CNN} does not say on how many ranks it ran",
            code="import.unknown-size",
            target=TF_CNN,
            hint="--ranks N",
        )
    if alone and each in {None, everywhere}:
        return ranks, everywhere
    batch = each or everywhere // ranks
    if batch * ranks != everywhere:
        raise differs(TF_CNN, f"{everywhere} samples are not {ranks} times {batch}", "check --ranks")
    return ranks, batch


def _model(tool: str, lines: Sequence[str]) -> str:
    models = {each.lower() for each in every(r"^\s*Model:\s*(\S+)", lines)}
    if len(models) > 1:
        raise joined_runs_error(tool, f"its models are {' and '.join(sorted(models))}")
    return next(iter(models), "")


def _one(tool: str, what: str, texts: Sequence[str]) -> int | None:
    """Return the number that all these lines agree on; None where there is none."""
    values = {parse_integer(each) for each in texts} - {None, 0}
    if len(values) > 1:
        raise joined_runs_error(tool, f"its {what} is {' and '.join(map(str, sorted(filter(None, values))))}")
    return next(iter(values), None)


def _agree(tool: str, ranks: int | None, asked: ImportOptions) -> None:
    if ranks is not None and asked.ranks not in {None, ranks}:
        raise differs(tool, f"it ran on {ranks} ranks, --ranks says {asked.ranks}", "leave out --ranks")
