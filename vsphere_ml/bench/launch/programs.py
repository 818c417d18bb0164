"""Which program each workload's ranks run, and with which arguments."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.bench.model.engines import ENGINES, Engine
from vsphere_ml.bench.model.job import SCRIPT, STOP
from vsphere_ml.bench.model.record import Arithmetic, Workload
from vsphere_ml.bench.network.regimes import Regime
from vsphere_ml.bench.probe import nccl_tests

if TYPE_CHECKING:
    from pathlib import Path

    from vsphere_ml.bench.model.job import Job
    from vsphere_ml.bench.probe.nccl_tests import AllReducePerf


# Options of a configuration that are not the program's.
HANDLED_APART = frozenset({"mpi", "least_nodes", "in", "variables", "engine", "ats", "gpu", "regime"})


def with_program(job: Job, script: Path | None, arguments: tuple[str, ...], tests: AllReducePerf | None = None) -> Job:
    """Return the job with its program; `script` and `arguments` are the user's own, `tests` what `nccl` runs."""
    if tests is not None:
        return replace(job, program=(tests.path, *nccl_tests.options(tests, job.configuration.options, job.folder)))
    return replace(job, program=(job.runtime.python, *_program(job, script, arguments)))


def _program(job: Job, script: Path | None, arguments: tuple[str, ...]) -> tuple[str, ...]:
    asked = job.configuration
    options = [
        word
        for name, value in sorted(asked.options.items())
        if name not in HANDLED_APART
        for word in (f"--{name}", value)
    ]
    if asked.workload is Workload.SCRIPT and script is not None:
        return (f"{job.folder}/{SCRIPT}/{script.name}", *arguments)
    if asked.workload is Workload.TRAIN:
        model = ("--model", asked.model, "--batch", str(asked.batch), "--precision", asked.gradients)
        math = ("--math", asked.precision) if asked.precision != Arithmetic.FP32 else ()
        how = ("--elastic",) if job.least_nodes else ("--until", f"{job.folder}/{STOP}")
        engine = ENGINES[Engine(asked.options.get("engine", Engine.TENSORFLOW))]
        over = ("--backend", str(asked.backend)) if engine.takes_backend else ()
        return (f"{job.folder}/train.py", "--engine", engine.module, *model, *math, *over, *options, *how)
    if asked.workload is Workload.REGIMES:
        options += _regime_options(Regime(asked.options["regime"]), asked.batch)
    return (f"{job.folder}/{asked.workload.value}.py", *options)


def _regime_options(regime: Regime, batch: int | None) -> list[str]:
    by = ["--by", regime.spec.by, "--batch", str(batch)]
    return by if regime.spec.in_step else [*by, "--asynchronous"]
