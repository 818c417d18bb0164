"""Runs that stand in a study, synthetic, and what a study is asked for."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.bench import synthetic
from vsphere_ml.bench.launch.matrix import BenchSpec
from vsphere_ml.bench.model.record import Configuration, Outcome, Run
from vsphere_ml.core.diagnostics import Diagnostic


def measured(asked: Configuration, launches: int = 3, faster: float = 1.0) -> tuple[Run, ...]:
    """Return complete launches of a configuration, computed and not measured."""
    machine = replace(synthetic.Machine(), usable_bytes_per_s=faster * synthetic.Machine().usable_bytes_per_s)
    make = synthetic.train if asked.workload == "train" else synthetic.sweep
    return tuple(
        replace(
            run,
            run_id=f"{asked.workload}-{asked.nodes}-{asked.transport}-{sorted(asked.options.items())}-{launch}",
            configuration=replace(asked, parameters=run.configuration.parameters),
        )
        for launch in range(1, launches + 1)
        for run in (make(asked.nodes, machine=machine, launch=launch),)
    )


def refused(asked: Configuration, code: str, why: str) -> Run:
    (run,) = measured(asked, launches=1)
    cause = Diagnostic(code=code, target="node-1", message=why, hint="--transport tcp")
    return replace(run, outcome=Outcome.REFUSED, reason=why, steps=None, sweep=(), diagnostics=(cause,))


def spec(**but: object) -> BenchSpec:
    return replace(BenchSpec(nodes=(1, 2), model="resnet50"), **but)  # type: ignore[arg-type]
