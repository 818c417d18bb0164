"""Makes records that were never measured: every one says `synthetic`. Times are drawn from a seeded AR(1) process.

`python -m tests.unit.bench.synthetic FOLDER` writes one to look at.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from vsphere_ml.bench.model.record import (
    Cluster,
    Configuration,
    Environment,
    Link,
    Outcome,
    Place,
    Proof,
    RegimeResult,
    Run,
    Steps,
    SweepPoint,
    TrafficCount,
    TrafficVerdict,
    Verdict,
    Workload,
)
from vsphere_ml.bench.model.record import Path as Way
from vsphere_ml.bench.records import store
from vsphere_ml.bench.stats.stop import launch_checkpoints, launches_suffice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vsphere_ml.bench.network.regimes import Regime

BEGIN = datetime(2026, 1, 31, 12, tzinfo=UTC)
TEN_GIGABIT = 10e9
RESNET50 = 25_557_032
SIZES = tuple(4**power * 1024 for power in range(9))  # 1 KiB to 64 MiB


def correlated(rng: random.Random, count: int, mean: float, *, cv: float = 0.02, phi: float = 0.6) -> list[float]:
    """Return an AR(1) series around `mean` with this coefficient of variation."""
    noise, values = rng.gauss(0, 1), []
    for _ in range(count):
        values.append(mean * (1 + cv * noise))
        noise = phi * noise + (1 - phi * phi) ** 0.5 * rng.gauss(0, 1)
    return values


def stopped_series(draw: Callable[[], float], half_width: float, *, cap: int = 20) -> tuple[float, ...]:
    """Return one figure a launch, of launches that end once they agree within `half_width`, or after `cap`."""
    figures: list[float] = []
    for look in (*launch_checkpoints(cap), cap):  # between them nothing can end it
        figures += [draw() for _ in range(look - len(figures))]
        if launches_suffice(figures, elapsed_s=0, cap_s=1, half_width=half_width):
            break
    return tuple(figures)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What the synthetic cluster is made of."""

    base_step_s: float = 0.150
    usable_bytes_per_s: float = 0.94 * TEN_GIGABIT / 8
    alpha_s: float = 60e-6
    line_rate_bits_per_s: float = TEN_GIGABIT
    cv: float = 0.02
    slow_rank: int | None = None
    slower_by: float = 1.4
    overlap: float = 0.3  # share of the exchange hidden behind the backward pass


def allreduce_s(machine: Machine, size: float, ranks: int) -> float:
    if ranks == 1:
        return 0.0
    return 2 * (ranks - 1) * machine.alpha_s + 2 * (ranks - 1) / ranks * size / machine.usable_bytes_per_s


def train(nodes: int, *, machine: Machine = Machine(), launch: int = 1, seed: int = 1, steps: int = 120) -> Run:
    rng = random.Random(f"{seed}-{nodes}-{launch}")
    level = rng.gauss(1, machine.cv / 4)  # launches differ as wholes
    own = [
        [
            each * (machine.slower_by if rank == machine.slow_rank else 1.0)
            for each in correlated(rng, steps, machine.base_step_s * level, cv=machine.cv)
        ]
        for rank in range(nodes)
    ]
    exchange = allreduce_s(machine, RESNET50 * 4, nodes)
    exposed = max(exchange * (1 - machine.overlap), exchange - machine.base_step_s * level)
    job = [max(row[step] for row in own) + exposed for step in range(steps)]
    job = [each * (3.0 if step < 2 else 1.3 if step < 8 else 1.0) for step, each in enumerate(job)]
    asked = Configuration(
        workload=Workload.TRAIN,
        nodes=nodes,
        ranks=nodes,
        launcher="horovodrun",
        backend="gloo",
        model="resnet50",
        parameters=RESNET50,
        batch=32,
    )
    table = tuple(tuple(job) for _ in range(nodes))
    return replace(
        _run(asked, launch, machine),
        steps=Steps(step_s=table, compute_s=tuple(map(tuple, own)), samples_per_step=32),
    )


def sweep(nodes: int, *, machine: Machine = Machine(), launch: int = 1, seed: int = 1, repeats: int = 20) -> Run:
    rng = random.Random(f"sweep-{seed}-{nodes}-{launch}")
    points = tuple(
        SweepPoint(
            size_bytes=size,
            time_s=tuple(allreduce_s(machine, size, nodes) * (1 + abs(rng.gauss(0, 0.02))) for _ in range(repeats)),
        )
        for size in SIZES
    )
    asked = Configuration(workload=Workload.ALLREDUCE, nodes=nodes, ranks=nodes, launcher="horovodrun", backend="gloo")
    return replace(_run(asked, launch, machine), sweep=points)


def regime(kind: Regime, nodes: int, step_s: float, *, launch: int = 1, own_s: float = 0.01, seed: int = 1) -> Run:
    """Return a launch by a regime: steps of so long around which each varies by 1 %, over a link of 10 MB/s."""
    rng = random.Random(f"{kind}-{nodes}-{launch}-{seed}")
    ranks = kind.spec.ranks or (2 if kind.spec.local else nodes)
    times = tuple(step_s * (1 + 0.01 * rng.gauss(0, 1)) for _ in range(30))
    rows = (times,) * ranks
    asked = Configuration(
        workload=Workload.REGIMES,
        nodes=nodes,
        ranks=ranks,
        launcher=kind.spec.launcher,
        backend=kind.spec.backend,
        batch=16,
        options={"regime": kind.value, **({"servers": "2"} if kind.spec.sharded else {})},
    )
    part = tuple((own_s / 2,) * len(times) for _ in rows)
    count = TrafficCount(
        node="node-0",
        interface="eth0",
        size_bytes=4_000_000,
        exchanges=30,
        expected_bytes=120_000_000,
        counted_bytes=120_600_000,
        ratio=1.005,
        verdict=TrafficVerdict.EXPECTED,
    )
    return replace(
        _run(asked, launch, Machine(usable_bytes_per_s=1e7)),
        steps=Steps(step_s=rows, input_s=part, compute_s=part, samples_per_step=16),
        regime=RegimeResult(size_bytes=4_000_000, samples=960, loss=0.58, behind=0.0 if kind.spec.in_step else 1.5),
        traffic=(count,),
    )


def record(*, machine: Machine = Machine(), nodes: int = 4, launches: int = 5, seed: int = 1) -> tuple[Run, ...]:
    """Return a whole record: training and all-reduce from one node to `nodes`."""
    return tuple(_record(machine, nodes, launches, seed))


def _record(machine: Machine, nodes: int, launches: int, seed: int) -> Iterator[Run]:
    at = 0
    for count in range(1, nodes + 1):
        for launch in range(1, launches + 1):
            made = [train(count, machine=machine, launch=launch, seed=seed)]
            made += [sweep(count, machine=machine, launch=launch, seed=seed)] if count > 1 else []
            for run in made:
                began = BEGIN + timedelta(minutes=at)
                yield replace(run, run_id=f"synthetic-{at:03}", started=_stamp(began), ended=_stamp(began))
                at += 1


def _run(asked: Configuration, launch: int, machine: Machine) -> Run:
    names = [f"node-{each}" for each in range(asked.ranks)]
    return Run(
        run_id=f"synthetic-{asked.workload}-{asked.nodes}-{launch}",
        launch=launch,
        lab=True,
        synthetic=True,
        started=_stamp(BEGIN),
        ended=_stamp(BEGIN + timedelta(seconds=40)),
        outcome=Outcome.COMPLETE,
        configuration=asked,
        cluster=Cluster(name="synthetic", plan_digest="0" * 12, playbook_digests={"base": "0" * 12}),
        environment=Environment(versions={"tensorflow": "2.21.0", "horovod": "0.28.1"}, command=("horovodrun",)),
        link=Link(
            line_rate_bits_per_s=machine.line_rate_bits_per_s,
            mtu_bytes=1500,
            calibrated_bytes_per_s=machine.usable_bytes_per_s,
        ),
        placement=tuple(
            Place(rank=rank, local_rank=0, node=name, hostname=name, host=f"esx-{rank}", device="cpu")
            for rank, name in enumerate(names)
        ),
        proofs=(
            Proof(name="in_sync", verdict=Verdict.YES, evidence="synthetic"),
            Proof(name="placement", verdict=Verdict.YES, evidence="synthetic"),
            Proof(name="path", verdict=Verdict.YES, evidence="synthetic"),
        ),
        paths=tuple(
            Way(channel="0", sender=str(rank), receiver=str((rank + 1) % asked.ranks), carrier="gloo/tcp", evidence="-")
            for rank in range(asked.ranks)
            if asked.ranks > 1
        ),
    )


def _stamp(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def write(runs: tuple[Run, ...], folder: Path) -> Path:
    for run in runs:
        store.write(run, folder)
    return folder


if __name__ == "__main__":
    write(record(), Path(sys.argv[1]))
