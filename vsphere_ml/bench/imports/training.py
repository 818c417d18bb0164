"""Horovod's synthetic benchmarks and tf_cnn_benchmarks: rates printed by rank 0."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vsphere_ml.bench.imports.parsed import Asked, Parsed, differs, every, joined, nothing, number, unended, whole
from vsphere_ml.bench.record import Remark, Workload
from vsphere_ml.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

HOROVOD = "horovod synthetic benchmark"
TF_CNN = "tf_cnn_benchmarks"
# `Iter #0: 310.0 img/sec per GPU`: %.1f in each program; forks tell the time of an iteration after it.
_ITERATION = re.compile(r"Iter #(\d{1,6}): (\d+\.\d) img/sec per \w+(?:\s*$|, )")
_CUT = re.compile(r"Iter #\d+:")
_TOTAL_LINE = r"^\s*total images/sec:\s*(\d+\.\d\d)\s*$"
_ALIKE = 0.01  # by which workers' accounts of one run's total differ at most
_RANK_0 = Remark(
    code="import.one-rank",
    target=HOROVOD,
    message="rank 0 alone was timed, each time is the mean of an iteration's batches; no straggler can be named",
)
_TOTAL = Remark(
    code="import.total",
    target=TF_CNN,
    message="the tool's total is one figure for the run: no interval can be told from it",
)


def is_horovod(lines: Sequence[str]) -> bool:
    return any("img/sec per" in line for line in lines)


def is_tf_cnn(lines: Sequence[str]) -> bool:
    return any("total images/sec:" in line for line in lines)


def horovod(lines: Sequence[str], asked: Asked) -> Parsed:
    """Return a step time for each iteration: its rate is that of one rank, over a number of batches."""
    iterations = [match for line in lines if (match := _ITERATION.search(line))]
    numbers = [int(match[1]) for match in iterations]
    if numbers != sorted(set(numbers)):
        raise joined(HOROVOD, "its iterations begin anew")
    batch = _one(HOROVOD, "batch size", every(r"^\s*Batch size:\s*(\d+)\s*$", lines))
    rates = [value for match in iterations if (value := number(match[2])) is not None]
    if not rates or batch is None:
        raise nothing(HOROVOD, "iterations" if batch is not None else "batch size")
    ranks = _one(HOROVOD, "number of ranks", every(r"Number of [CG]PUs:\s*(\d+)\s*$", lines))
    _agree(HOROVOD, ranks, asked)
    return Parsed(
        tool=HOROVOD,
        workload=Workload.TRAIN,
        ranks=ranks,
        model=_model(HOROVOD, lines),
        batch=batch,
        step_s=tuple(batch / rate for rate in rates),
        remarks=(_RANK_0, *_gaps(lines, numbers)),
    )


def _gaps(lines: Sequence[str], numbers: Sequence[int]) -> tuple[Remark, ...]:
    """Return what shows that iterations are missing: one that was cut or skipped, or no total at the end."""
    lost = numbers[-1] + 1 - len(numbers) + sum(bool(_CUT.search(each)) for each in lines) - len(numbers)
    ended = any("otal img/sec on" in line for line in lines)
    gone = Remark(
        code="import.left-out",
        target=HOROVOD,
        message=f"{lost} iterations are missing or cut, and left out",
        hint="give the whole output",
    )
    return (*((gone,) if lost else ()), *(() if ended else unended(HOROVOD, "its total")))


def tf_cnn(lines: Sequence[str], asked: Asked) -> Parsed:
    """Return the one step time that the total tells: it is over all workers, each of which may print it."""
    totals = [value for each in every(_TOTAL_LINE, lines) if (value := number(each)) is not None]
    everywhere = _one(TF_CNN, "global batch size", every(r"^\s*Batch size:\s*(\d+) global", lines))
    each = _one(TF_CNN, "batch size per device", every(r"^\s*(\d+)(?:\.0)? per device", lines))
    if not totals or everywhere is None:
        raise nothing(TF_CNN, "total images/sec with the global batch size")
    if max(totals) > min(totals) * (1 + _ALIKE):
        raise joined(TF_CNN, f"its totals are {min(totals):g} and {max(totals):g} images/s")
    ranks, batch = _shared(everywhere, each, asked)
    return Parsed(
        tool=TF_CNN,
        workload=Workload.TRAIN,
        ranks=ranks,
        model=_model(TF_CNN, lines),
        batch=batch,
        step_s=(everywhere / totals[0],),
        remarks=(_TOTAL,),
    )


def _shared(everywhere: int, each: int | None, asked: Asked) -> tuple[int, int]:
    """Return the number of ranks and the batch of each. Raises ConfigError when they do not make up the whole."""
    ranks = asked.ranks or (everywhere // each if each else None)
    if ranks is None:
        raise ConfigError(
            f"{TF_CNN} does not say on how many ranks it ran",
            code="import.unknown-size",
            target=TF_CNN,
            hint="--ranks N",
        )
    batch = each or everywhere // ranks
    if batch * ranks != everywhere:
        raise differs(TF_CNN, f"{everywhere} samples are not {ranks} times {batch}", "check --ranks")
    return ranks, batch


def _model(tool: str, lines: Sequence[str]) -> str:
    models = {each.lower() for each in every(r"^\s*Model:\s*(\S+)", lines)}
    if len(models) > 1:
        raise joined(tool, f"its models are {' and '.join(sorted(models))}")
    return next(iter(models), "")


def _one(tool: str, what: str, told: Sequence[str]) -> int | None:
    """Return the number that all these lines tell; None where there is none."""
    values = {whole(each) for each in told} - {None, 0}
    if len(values) > 1:
        raise joined(tool, f"its {what} is {' and '.join(map(str, sorted(filter(None, values))))}")
    return next(iter(values), None)


def _agree(tool: str, ranks: int | None, asked: Asked) -> None:
    if ranks is not None and asked.ranks not in {None, ranks}:
        raise differs(tool, f"it ran on {ranks} ranks, --ranks says {asked.ranks}", "leave out --ranks")
