"""A prediction on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from rich.console import Group

from vsphere_ml.bench.model import figures
from vsphere_ml.cli.views.layout.text import line, table
from vsphere_ml.core.codec import Extended
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from vsphere_ml.bench.predict.data_paths import Crossing
    from vsphere_ml.bench.predict.gpu_memory import MemoryNeed
    from vsphere_ml.bench.predict.predict import Exchange, Prediction, UsedShare
    from vsphere_ml.bench.predict.roofline import Roofline


class _Total(TypedDict):
    """Bytes in all, and whether they fit; null where activations, which are not given, decide."""

    total: int
    fits: bool | None


class _Ridges(TypedDict):
    """FLOP for each byte below which the GPU waits for its memory, and for the network."""

    memory_ridge: float
    network_ridge: float


class PredictionMore(TypedDict):
    """What follows from a prediction, and what was asked for beside it."""

    line_bytes_per_s: float
    usable_bytes_per_s: float
    measured: UsedShare | None
    paths: Sequence[Crossing]
    memory: Extended[MemoryNeed, _Total] | None
    roofline: Extended[Roofline, _Ridges] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """What a prediction adds where it is asked for."""

    crossings: Sequence[Crossing] = ()
    memory: MemoryNeed | None = None
    roofline: Roofline | None = None


def text(
    made: Prediction,
    measured: UsedShare | None,
    extras: Extras | None = None,
) -> Group:
    """Return the prediction, a line a number of nodes, and what else was asked for."""
    shown = extras or Extras()
    return Group(
        *_parts(made, measured, shown.crossings),
        *_memory(shown.memory),
        *_roofline(shown.roofline),
        line(("computed from sizes; nothing was measured", "dim")),
    )


def data(
    made: Prediction,
    measured: UsedShare | None,
    extras: Extras | None = None,
) -> Extended[Prediction, PredictionMore]:
    """Return the prediction's fields, and what follows from them."""
    shown = extras or Extras()
    return Extended(
        made,
        {
            "line_bytes_per_s": made.link.line_bytes_per_s,
            "usable_bytes_per_s": made.link.usable_bytes_per_s,
            "measured": measured,
            "paths": shown.crossings,
            "memory": _memory_data(shown.memory),
            "roofline": _roofline_data(shown.roofline),
        },
    )


def _memory_data(need: MemoryNeed | None) -> Extended[MemoryNeed, _Total] | None:
    return None if need is None else Extended(need, {"total": need.total, "fits": need.fits})


def _roofline_data(roof: Roofline | None) -> Extended[Roofline, _Ridges] | None:
    if roof is None:
        return None
    return Extended(roof, {"memory_ridge": roof.memory_ridge, "network_ridge": roof.network_ridge})


def _parts(made: Prediction, measured: UsedShare | None, crossings: Sequence[Crossing]) -> Iterator[RenderableType]:
    yield line((_link(made), "bold"))
    job = made.job
    yield line(f"{job.parameters:,} parameters as {job.gradients}: {figures.amount(made.size_bytes)} exchanged a step")
    yield table(_titles(made), (_row(each) for each in made.exchanges))
    yield line(f"with ever more ranks a ring tends to {_ms(made.limit_s)} at line rate{_limit_hours(made)}")
    if job.base_step_s is not None:
        step = figures.seconds(job.base_step_s)
        yield line(f"a step takes {step} on one node; floor: nothing hidden behind it, ceiling: all")
    if made.jumbo_gain is not None:
        yield line(("MTU 9000", "cyan"), f" would carry {figures.percent(made.jumbo_gain)} more")
    if measured is not None:
        yield line(
            f"{figures.bandwidth(measured.bytes_per_s)} is {figures.percent(measured.of_line)} of line rate, "
            f"{figures.percent(measured.of_usable)} of what headers leave"
        )
    if crossings:
        yield line("each path once, by its maker's figure, without protocol or latency:")
        titles = ("PATH", "WHAT", "ONE DIRECTION", "GRADIENTS IN", "SOURCE")
        yield table(titles, map(_crossing_row, crossings), ("WHAT", "SOURCE"))


_FITS = {
    True: ("fits", "green"),
    False: ("does not fit", "red"),
    None: ("fits unless activations take the rest", "yellow"),
}


def _memory(needed: MemoryNeed | None) -> Iterator[RenderableType]:
    if needed is None:
        return
    parts = {"weights": needed.weights, "gradients": needed.gradients, "optimizer": needed.optimizer}
    if needed.activations is not None:
        parts["activations"] = needed.activations
    each = ", ".join(f"{name} {figures.amount(size)}" for name, size in parts.items())
    total = figures.amount(needed.total)
    yield line(f"{needed.profile} has {figures.amount(needed.framebuffer)}; a rank keeps {total}: {each}")
    yield line(_FITS[needed.fits], "; what libraries and workspaces take is not counted")


def _roofline(roof: Roofline | None) -> Iterator[RenderableType]:
    if roof is None:
        return
    from vsphere_ml.bench.report import roofline_page

    ridges = (figures.number(roof.memory_ridge), figures.number(roof.network_ridge))
    yield line(
        f"{roof.gpu}, {roof.math}: {figures.flops(roof.peak)}; it waits below {ridges[0]} FLOP for each byte of its "
        f"memory, below {ridges[1]} for each byte to other nodes"
    )
    yield table(roofline_page.TITLES, roofline_page.rows(roof))


def _crossing_row(each: Crossing) -> tuple[str, ...]:
    path = each.path
    return (path.name, path.about, figures.bandwidth(path.bytes_per_s), figures.seconds(each.seconds), path.source)


def _link(made: Prediction) -> str:
    model = made.link
    nics = f"{model.nics} × " if model.nics > 1 else ""
    return (
        f"{nics}{figures.rate(model.line_rate_bits_per_s)} = {figures.bandwidth(model.line_bytes_per_s)}; "
        f"by {model.transport} with MTU {model.mtu_bytes} headers leave {figures.bandwidth(model.usable_bytes_per_s)} "
        f"({figures.percent(model.usable_bytes_per_s / model.line_bytes_per_s)})"
    )


def _titles(made: Prediction) -> tuple[str, ...]:
    titles = ["NODES", "RANKS", "AT LINE RATE", "RING", "NODE-LEVEL"]
    if made.job.base_step_s is not None:
        titles += ["FLOOR", "CEILING"]
    if made.job.iterations is not None:
        titles.append("HOURS OF EXCHANGE")
    if made.exchanges[0].turning_batch is not None:
        titles.append("NETWORK-BOUND BELOW BATCH")
    if made.exchanges[0].run_time is not None:
        titles += ["STEPS", "HOURS AT FLOOR", "AT CEILING"]
    return tuple(titles)


def _row(each: Exchange) -> tuple[str, ...]:
    cells = [str(each.shape.nodes), str(each.shape.ranks), _ms(each.line_s), _ms(each.ring_s), _ms(each.node_level_s)]
    if each.floor is not None and each.ceiling is not None:
        cells += [figures.percent(each.floor), figures.percent(each.ceiling)]
    if each.hours is not None:
        cells.append(f"{each.hours:,.1f}")
    if each.turning_batch is not None:
        cells.append(figures.number(each.turning_batch))
    if each.run_time is not None:
        hours = (each.run_time.at_floor, each.run_time.at_ceiling)
        cells += [f"{each.run_time.steps:,}", *(f"{hour:,.1f}" for hour in hours)]
    return tuple(cells)


def _limit_hours(made: Prediction) -> str:
    if made.limit_hours is None or made.job.iterations is None:
        return ""
    return (
        f": {made.limit_hours:,.1f} h = {made.limit_hours / 24:,.1f} days of exchange in {made.job.iterations:,} steps,"
        " with nothing hidden"
    )


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:,.1f} ms"
