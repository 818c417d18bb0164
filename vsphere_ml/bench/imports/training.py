"""Horovod's synthetic benchmarks and tf_cnn_benchmarks: rates printed by rank 0."""

from __future__ import annotations

import re

from vsphere_ml.bench.imports.parsed import Parsed, found, nothing, number
from vsphere_ml.bench.record import Remark, Workload

HOROVOD = "horovod synthetic benchmark"
TF_CNN = "tf_cnn_benchmarks"
_ITERATION = re.compile(r"Iter #\d+: ([\d.]+) img/sec per")
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


def is_horovod(text: str) -> bool:
    return "img/sec per" in text and _ITERATION.search(text) is not None


def is_tf_cnn(text: str) -> bool:
    return "total images/sec:" in text


def horovod(content: str) -> Parsed:
    """Return a step time for each iteration: its rate is that of one rank, over a number of batches."""
    batch = _count(found(r"^.*Batch size:\s*(\d+)", content))
    if batch is None:
        raise nothing(HOROVOD, "batch size")
    rates = [value for each in _ITERATION.findall(content) if (value := number(each)) is not None]
    if not rates:
        raise nothing(HOROVOD, "iterations")
    return Parsed(
        tool=HOROVOD,
        workload=Workload.TRAIN,
        ranks=_count(found(r"Number of [CG]PUs:\s*(\d+)", content)),
        model=found(r"Model:\s*(\S+)", content).lower(),
        batch=batch,
        step_s=tuple(batch / rate for rate in rates),
        remarks=(_RANK_0,),
    )


def tf_cnn(content: str) -> Parsed:
    """Return the one step time that the total tells: it is over all workers."""
    total = number(found(r"total images/sec:\s*([\d.]+)", content))
    everywhere = _count(found(r"Batch size:\s*(\d+) global", content))
    each = _count(found(r"^\s*(\d+) per device", content))
    if total is None or everywhere is None:
        raise nothing(TF_CNN, "total images/sec with the global batch size")
    return Parsed(
        tool=TF_CNN,
        workload=Workload.TRAIN,
        ranks=everywhere // each if each else None,
        model=found(r"Model:\s*(\S+)", content).lower(),
        batch=each or everywhere,
        step_s=(everywhere / total,),
        remarks=(_TOTAL,),
    )


def _count(text: str) -> int | None:
    return int(text) if text.isdigit() and int(text) > 0 else None
