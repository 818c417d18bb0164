"""What a document must hold beyond its shape, so that no reader divides by zero or compares unlike lists."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from vsphere_ml.core.codec import Mismatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from vsphere_ml.bench.model.record import LocalSteps, Run, Steps, SweepPoint


SMALLEST, LARGEST = 1e-12, 1e18  # a picosecond; an exabyte


def check(run: Run) -> None:
    """Raise Mismatch with the path to the first value that cannot be meant."""
    for key in ("started", "ended"):
        _time(getattr(run, key), key)
    asked = run.configuration
    for key in ("nodes", "ranks", "batch", "parameters"):
        _check_positive(getattr(asked, key), ("configuration", key))
    for key in ("line_rate_bits_per_s", "nics", "mtu_bytes", "calibrated_bytes_per_s"):
        _check_positive(getattr(run.link, key), ("link", key))
    if run.steps is not None:
        _steps(run.steps, asked.ranks)
    for at, world in enumerate(run.worlds):
        _check_positive(world.ranks, ("worlds", at, "ranks"))
        for step, value in enumerate(world.step_s):
            _check_positive(value, ("worlds", at, "step_s", step))
    _sweep(run.sweep)
    for at, result in enumerate(run.link_results):
        for key in ("bytes_per_s", "line_rate_bits_per_s", "rdma_mtu_bytes"):
            _check_positive(getattr(result, key), ("link_results", at, key))


def _sweep(points: Sequence[SweepPoint]) -> None:
    for at, point in enumerate(points):
        _check_positive(point.size_bytes, ("sweep", at, "size_bytes"))
        _times(point.time_s, ("sweep", at, "time_s"))
        if point.iterations_s:
            _times(point.iterations_s, ("sweep", at, "iterations_s"))


def _steps(steps: Steps, ranks: int) -> None:
    _check_positive(steps.samples_per_step, ("steps", "samples_per_step"))
    _table(steps.step_s, ranks, "step_s")
    for rank, row in enumerate(steps.step_s):
        _times(row, ("steps", "step_s", rank))
    for key in ("input_s", "work_s", "compute_s", "loss"):
        rows: Sequence[Sequence[float | None]] = getattr(steps, key)
        if rows:
            _table(rows, ranks, key)
            if len(rows[0]) != len(steps.step_s[0]):
                raise Mismatch(("steps", key), "it has not as many steps as step_s")
    for key in ("input_s", "work_s", "compute_s"):
        _durations(getattr(steps, key), key)
    for rank, value in enumerate(steps.wall_s):
        _check_positive(value, ("steps", "wall_s", rank))
    if steps.wall_s and len(steps.wall_s) != ranks:
        raise Mismatch(("steps", "wall_s"), f"it has {len(steps.wall_s)} ranks, the configuration {ranks}")
    if steps.local is not None:
        _local_steps(steps.local, ranks)


def _local_steps(local: LocalSteps, ranks: int) -> None:
    for key in ("period_s", "compute_s", "exchange_s"):
        rows: Sequence[Sequence[float]] = getattr(local, key)
        if not rows and key == "exchange_s":
            continue
        _table(rows, ranks, "local", key)
        if len(rows[0]) != len(local.period_s[0]):
            raise Mismatch(("steps", "local", key), "it has not as many steps as period_s")
        for rank, row in enumerate(rows):
            _times(row, ("steps", "local", key, rank))


def _durations(rows: Sequence[Sequence[float]], key: str) -> None:
    """Check times of what may take none."""
    for rank, row in enumerate(rows):
        for step, value in enumerate(row):
            if value < 0:
                raise Mismatch(("steps", key, rank, step), f"0 or more is wanted, not {value}")
            _check_positive(value or None, ("steps", key, rank, step))


def _table(rows: Sequence[Sequence[float | None]], ranks: int, *keys: str) -> None:
    path = ("steps", *keys)
    if len(rows) != ranks:
        raise Mismatch(path, f"it has {len(rows)} ranks, the configuration {ranks}")
    for rank, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise Mismatch((*path, rank), f"rank {rank} has {len(row)} steps, rank 0 has {len(rows[0])}")


def _times(values: Iterable[float], path: tuple[str | int, ...]) -> None:
    empty = True
    for at, value in enumerate(values):
        _check_positive(value, (*path, at))
        empty = False
    if empty:
        raise Mismatch(path, "at least one time is wanted")


def _check_positive(value: float | None, path: tuple[str | int, ...]) -> None:
    if value is None:
        return
    if value <= 0:
        raise Mismatch(path, f"more than 0 is wanted, not {value}")
    if not SMALLEST <= value <= LARGEST:
        raise Mismatch(path, f"a number from {SMALLEST:g} to {LARGEST:g} is wanted, not {_shorten_number(value)}")


def _shorten_number(value: float) -> str:
    try:
        return f"{value:.3g}"
    except OverflowError:  # a whole number beyond what a float can be
        return f"one of {value.bit_length() if isinstance(value, int) else 0} bits"


def _time(value: str, key: str) -> None:
    try:
        aware = datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        aware = False
    if not aware:
        raise Mismatch((key,), f"a time such as 2026-01-31T12:00:00Z is wanted, not {value!r}")
