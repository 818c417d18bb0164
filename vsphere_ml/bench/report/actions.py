"""What to do first after a benchmark: the most important remarks that something can be done about, as commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vsphere_ml.core.diagnostics import Diagnostic


MOST = 3
# By a remark's code: what shows more of it, or corrects it.
COMMANDS = {
    "bench.out-of-sync": "vsml bench check SCRIPT",
    "bench.wrong-placement": "vsml verify",
    "bench.one-host": "vsml plan --explain",
    "bench.wrong-path": "vsml verify",
    "bench.no-gpudirect": "vsml verify",
    "bench.lost-node": "vsml status",
    "bench.versions-differ": "vsml configure",
    "bench.straggler": "vsml run -- uptime",
    "bench.slow-link": "vsml bench --workload link",
    "bench.oversubscribed": "vsml plan --explain",
    "bench.link-drift": "vsml bench --workload link",
    "bench.below-floor": "vsml bench --workload allreduce --workload link",
    "bench.above-ceiling": "vsml bench --nodes 1 --repeats 5",
    "bench.above-link-rate": "vsml bench --workload link",
    "bench.collective": "vsml verify",
    "bench.network": "vsml bench --compression fp16",
    "bench.mtu": "vsml verify",
    "bench.spread": "vsml bench --workload allreduce --iters 50",
    "bench.not-settled": "vsml bench --steps 1000",
    "bench.noisy": "vsml bench --repeats 10",
    "bench.one-launch": "vsml bench --repeats 5",
}


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do: why, and the command to type, empty where there is none."""

    finding: Diagnostic
    command: str


def actions(findings: Iterable[Diagnostic]) -> tuple[Action, ...]:
    """Return at most three, one for each code. Remarks come with the most important first, and of it the smallest."""
    largest = {each.code: each for each in findings if each.hint or each.code in COMMANDS}
    return tuple(Action(each, COMMANDS.get(each.code, "")) for each in list(largest.values())[:MOST])
