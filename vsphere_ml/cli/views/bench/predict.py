"""A prediction on the terminal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Group

from vsphere_ml.bench.model import figures
from vsphere_ml.cli.views.layout.text import line, table
from vsphere_ml.core.codec import encode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from vsphere_ml.bench.predict.data_paths import Crossing
    from vsphere_ml.bench.predict.gpu_memory import MemoryNeed
    from vsphere_ml.bench.predict.predict import Exchange, Prediction, UsedShare
    from vsphere_ml.bench.predict.roofline import Roofline


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
) -> dict[str, Any]:
    """Return the prediction's fields, and what follows from them."""
    shown = extras or Extras()
    rates = {
        "line_bytes_per_s": made.link.line_bytes_per_s,
        "usable_bytes_per_s": made.link.usable_bytes_per_s,
    }
    paths = [encode(each) for each in shown.crossings]
    need, roof = shown.memory, shown.roofline
    memory = None if need is None else {**encode(need), "total": need.total, "fits": need.fits}
    ridges = {} if roof is None else {"memory_ridge": roof.memory_ridge, "network_ridge": roof.network_ridge}
    more = {"paths": paths, "memory": memory, "roofline": None if roof is None else {**encode(roof), **ridges}}
    return {**encode(made), **rates, "measured": encode(measured), **more}


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
        yield table(("PATH", "WHAT", "ONE DIRECTION", "GRADIENTS IN", "SOURCE"), map(_crossing_row, crossings))


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
