"""A report's first screen: its verdict in a sentence, and four figures beside it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from vsphere_ml.bench.analysis.explain import COLLECTIVE_WELL, LINK_WELL
from vsphere_ml.bench.analysis.study import AT_CEILING, BoundsCheck
from vsphere_ml.bench.model import figures
from vsphere_ml.bench.model.record import Outcome, Verdict
from vsphere_ml.bench.network.sweeps import collective, peak
from vsphere_ml.core.order import count
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vsphere_ml.bench.analysis.regimes import RegimePoint
    from vsphere_ml.bench.analysis.study import LinkCapacity, Scaling, Study, Sweep
    from vsphere_ml.bench.model.record import Configuration, Run
    from vsphere_ml.bench.network.bounds import EfficiencyBounds

PROOFS = ("in_sync", "placement", "path", "clean")
# What a reader must know before any figure, the worst first.
_REFUTED = {
    "in_sync": "The ranks did not train together: their weights differ, and the speed means nothing.",
    "placement": "The ranks did not run on the nodes that were asked for.",
    "path": "The bytes did not go by the transport that was asked for.",
    "clean": "Something was left behind in the guests.",
}


class Tone(StrEnum):
    """How good a figure is. The words are the page's classes."""

    GOOD = "good"
    FAIR = "fair"
    BAD = "bad"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Headline:
    """The verdict of the whole record."""

    tone: Tone
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """One figure of the first screen."""

    label: str
    value: str
    detail: str = ""
    tone: Tone = Tone.UNKNOWN


def headline(seen: Study) -> Headline:
    """Return the verdict: what refutes the figures, or else the largest configuration's figure and its bound."""
    if len(seen.skipped) == len(seen.runs):
        launches = count(len(seen.runs), "launch", "launches")
        return find_refutation(seen.runs) or Headline(
            Tone.BAD, f"Nothing was measured: of {launches} none is complete."
        )
    return find_refutation(seen.runs) or next(_headlines(seen), Headline(Tone.UNKNOWN, "Complete, without step times."))


def find_refutation(runs: Sequence[Run]) -> Headline | None:
    """Return which proof failed; None when none did."""
    failed = {each.name for run in runs for each in run.proofs if each.verdict is Verdict.NO}
    return next((Headline(Tone.BAD, text) for name, text in _REFUTED.items() if name in failed), None)


def _headlines(seen: Study) -> Iterator[Headline]:
    """Yield a sentence for each workload that was measured, training first."""
    if seen.scalings:
        yield _scaling(max(seen.scalings, key=lambda each: _size(each.point.configuration)))
    if seen.regimes:
        yield _regimes(seen.regimes)
    if sweep := _largest_sweep(seen):
        yield _sweep(sweep)
    for _, link in seen.link_capacities:
        yield _link(link)


def _regimes(points: Sequence[RegimePoint]) -> Headline:
    """Return the regime with the shortest step on the most nodes, and how near it is to its bound."""
    most = max(each.configuration.nodes for each in points)
    best = min((each for each in points if each.configuration.nodes == most), key=lambda each: each.step.value)
    sentence = f"Shortest step on {count(most, 'node')}: {best.regime.spec.title}, {figures.seconds(best.step.value)}"
    if best.share is None or best.regime.spec.local:
        return Headline(Tone.UNKNOWN, f"{sentence}.")
    tone = Tone.GOOD if best.share >= COLLECTIVE_WELL else Tone.FAIR
    return Headline(tone, f"{sentence}, {figures.percent(best.share)} of what the link allows it.")


def _size(asked: Configuration) -> tuple[int, int]:
    return asked.nodes, asked.ranks


def _largest_sweep(seen: Study) -> Sweep | None:
    sweeps = [each for each in seen.sweeps if each.configuration.ranks > 1]
    return max(sweeps, key=lambda each: _size(each.configuration), default=None)


def _scaling(each: Scaling) -> Headline:
    nodes = count(each.point.configuration.nodes, "node")
    if each.efficiency is None or each.point.configuration.nodes == 1:
        return Headline(Tone.UNKNOWN, f"{_speed(each)} on {nodes}.")
    sentence = f"Scaling efficiency {figures.percent(each.efficiency.value)} on {nodes}"
    if each.bounds is None:
        return Headline(Tone.UNKNOWN, f"{sentence}. What the network would allow is not known.")
    allowed = _allowed_range(each.bounds)
    match each.bounds_check:
        case BoundsCheck.BELOW:
            return Headline(
                Tone.BAD, f"{sentence}. The network alone would allow {allowed}: something else slows it down."
            )
        case BoundsCheck.ABOVE:
            return Headline(Tone.BAD, f"{sentence} is more than the network can allow ({allowed}): a figure is wrong.")
        case _:
            return Headline(Tone.GOOD, f"{sentence}, within what the network allows ({allowed}).")


def _allowed_range(bounds: EfficiencyBounds) -> str:
    return f"{bounds.floor * 100:.0f} to {bounds.ceiling * 100:.0f} %"


def _speed(each: Scaling) -> str:
    rate = each.point.samples_per_s
    if rate is None:
        return f"A step of {figures.seconds(each.point.step.value)}"
    return f"{figures.number(rate.value)} samples/s"


def _sweep(sweep: Sweep) -> Headline:
    best, what = peak(sweep.sizes), collective(sweep.configuration).replace("_", "-").capitalize()
    if best is None:
        return Headline(Tone.UNKNOWN, f"{what} shows no bus bandwidth.")
    sentence = f"{what} reaches {figures.bandwidth(best.bus_bytes_per_s)} of bus bandwidth"
    if sweep.share is None:
        return Headline(Tone.UNKNOWN, f"{sentence}. What the link would allow is not known.")
    if sweep.share > AT_CEILING:
        return Headline(Tone.BAD, f"{sentence}, {figures.percent(sweep.share)} of the link: that cannot be.")
    return Headline(_tone(sweep.share, COLLECTIVE_WELL), f"{sentence}, {figures.percent(sweep.share)} of the link.")


def _link(link: LinkCapacity) -> Headline:
    sentence = f"The slowest link carries {figures.bandwidth(link.calibrated_bytes_per_s or 0.0)}"
    if link.share is None:
        return Headline(Tone.UNKNOWN, f"{sentence}. Its line rate is not known.")
    return Headline(
        _tone(link.share, LINK_WELL), f"{sentence}, {figures.percent(link.share)} of its line rate's payload."
    )


def _tone(share: float, well: float) -> Tone:
    if share > AT_CEILING:
        return Tone.BAD
    return Tone.GOOD if share >= well else Tone.FAIR


def tiles(seen: Study) -> tuple[Tile, ...]:
    """Return throughput, efficiency, bus bandwidth and proofs, as far as the record has them."""
    return (*_training_tiles(seen), *_network_tiles(seen), _proofs(seen.runs))


def _training_tiles(seen: Study) -> Iterator[Tile]:
    if not seen.scalings:
        return
    each = max(seen.scalings, key=lambda scaling: _size(scaling.point.configuration))
    rate = each.point.samples_per_s or each.point.step
    value = f"{figures.number(rate.value)} samples/s" if rate is not each.point.step else figures.seconds(rate.value)
    label = "throughput" if rate is not each.point.step else "step"
    yield Tile(label=label, value=value, detail=figures.plus_minus(rate))
    if each.efficiency is not None and each.point.configuration.nodes > 1:
        detail = "network's bound not known"
        if each.bounds is not None:
            detail = f"network allows {_allowed_range(each.bounds)}"
        yield Tile(
            label="efficiency",
            value=figures.percent(each.efficiency.value),
            detail=detail,
            tone=_scaling(each).tone,
        )


def _network_tiles(seen: Study) -> Iterator[Tile]:
    sweep = _largest_sweep(seen)
    if sweep is not None and (best := peak(sweep.sizes)) is not None:
        detail = "link not known" if sweep.share is None else f"{figures.percent(sweep.share)} of the link"
        value = figures.bandwidth(best.bus_bytes_per_s)
        yield Tile(label="bus bandwidth", value=value, detail=detail, tone=_sweep(sweep).tone)
    elif seen.link_capacities:
        link = seen.link_capacities[-1][1]
        detail = "line rate not known" if link.share is None else f"{figures.percent(link.share)} of its line rate"
        value = figures.bandwidth(link.calibrated_bytes_per_s or 0.0)
        yield Tile(label="slowest link", value=value, detail=detail, tone=_link(link).tone)


def _proofs(runs: Sequence[Run]) -> Tile:
    """Return how many of the proofs hold in every complete launch, and the names of those that do not."""
    complete = [run for run in runs if run.outcome is Outcome.COMPLETE] or list(runs)
    missing = [name for name in PROOFS if any(run.proof(name) is not Verdict.YES for run in complete)]
    detail = "all" if not missing else f"not proven: {', '.join(missing).replace('_', ' ')}"
    tone = Tone.GOOD if not missing else Tone.BAD if find_refutation(runs) else Tone.FAIR
    return Tile(label="proofs", value=f"{len(PROOFS) - len(missing)} of {len(PROOFS)}", detail=detail, tone=tone)
