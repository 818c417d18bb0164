"""What benchmark commands that need guests show, of records that were computed and not measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group

from tests.unit.bench import synthetic
from tests.unit.bench.gate.test_selftest import RATE, slowed, swept
from tests.unit.bench.report.regimes.test_regime_report import RECORD
from tests.unit.bench.studies.studies import refused
from tests.unit.bench.studies.test_side_by_side import WHY, transports
from vsphere_ml.bench.gate.selftest import checks
from vsphere_ml.bench.launch.matrix import PlannedLaunch
from vsphere_ml.bench.model.record import Configuration, Workload
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.cli.views.bench import run, selftest
from vsphere_ml.cli.views.bench.studies import side_by_side
from vsphere_ml.flows.bench.series import BenchResult
from vsphere_ml.flows.bench.study import StudyOutcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import RenderableType

FOLDER = Path("bench/2026-01-31T120000")
OVER_RDMA = Configuration(
    workload=Workload.ALLREDUCE,
    nodes=2,
    ranks=2,
    launcher="horovodrun",
    backend="nccl",
    transport=Transport.GPUDIRECT,
)


def benchmarked() -> BenchResult:
    """Return a record of launches that are complete, one that was refused, and one that was not begun."""
    runs = (*synthetic.record(nodes=2, launches=2), refused(OVER_RDMA, "bench.no-rdma", WHY))
    left = PlannedLaunch(configuration=OVER_RDMA, launch=2)
    return BenchResult(cluster="train", folder=FOLDER, runs=runs, not_started=(left,))


def study() -> RenderableType:
    step = "vsml enable-ats cluster.toml --allow-downtime, then the same command again"
    return side_by_side.answer(StudyOutcome(folder=FOLDER, result=transports(), errors=(), next_steps=(step,))).text


SCREENS: dict[str, Callable[[], RenderableType]] = {
    "bench regimes": lambda: run.text(BenchResult(cluster="train", folder=FOLDER, runs=RECORD)),
    "bench run": lambda: run.text(benchmarked()),
    "bench selftest": lambda: selftest.text(checks(swept(), slowed(), "node-4", RATE), FOLDER),
    "bench selftest, with what does not hold": lambda: Group(
        selftest.text(checks(swept(0.5), slowed(), "node-4", RATE), FOLDER)
    ),
    "bench study": study,
}
