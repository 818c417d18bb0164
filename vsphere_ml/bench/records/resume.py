"""Whether a record can be resumed: only launches that were made under the same conditions stand side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.bench.model.record import Outcome
from vsphere_ml.core.errors import ConfigError, NotPossible
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from vsphere_ml.bench.model.record import Run
    from vsphere_ml.bench.probe.machines import Machine

_ELSEWHERE = "--results a folder of its own; `vsml bench report` and `explain` take several records"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What every launch of a record has in common, besides what its configuration says."""

    plan_digest: str  # of the cluster as its file plans it
    interface: str  # that ranks talk over
    machines: Mapping[str, Machine]  # by node, in the order in which launches take them


def check_cluster(recorded: Sequence[Run], cluster: str, *, lab: bool) -> None:
    """Raise ConfigError `record.other-cluster` when what a run would go on with was not measured here."""
    others = [run for run in recorded if run.cluster is None or run.cluster.name != cluster or run.lab != lab]
    if others:
        what = others[0].cluster.name if others[0].cluster and others[0].cluster.name != cluster else "elsewhere"
        raise ConfigError(
            f"the record has launches of another cluster ({what}): what it has would not be measured here",
            code="record.other-cluster",
            target=others[0].run_id,
            hint="--results a folder of its own",
        )


def check_conditions(recorded: Sequence[Run], here: Conditions) -> None:
    """Raise NotPossible `record.other-conditions` when complete launches were made otherwise than the next would be.

    Those that failed hold nothing back: mending what they failed of is why one goes on. What a record of an older vsml
    does not hold is not held against it.
    """
    for run in recorded:
        unlike = tuple(_find_environment_changes(run, here)) if run.outcome is Outcome.COMPLETE else ()
        if unlike:
            raise NotPossible(
                "the record has launches that were made under other conditions: they would stand beside the next ones "
                "as if made alike",
                code="record.other-conditions",
                target=run.run_id,
                details=unlike,
                hint=_ELSEWHERE,
            )


def _find_environment_changes(run: Run, here: Conditions) -> Iterator[str]:
    then = run.link.interface
    if then and then != here.interface:
        yield f"interface: {then} in the record, {here.interface} now"
    planned = run.cluster.plan_digest if run.cluster else ""
    if planned and planned != here.plan_digest:
        yield f"cluster as planned: {planned} in the record, {here.plan_digest} now: its file was changed since"
    ran, ours = _nodes(run), tuple(here.machines)[: run.configuration.nodes]
    if not (set(ran) <= set(ours) or set(ran) >= set(ours)):  # an elastic job has fewer, a larger launch more
        yield f"nodes: {', '.join(ran)} in the record, {', '.join(ours)} now"
    for node in ours:
        yield from _of_vm(node, run, here.machines[node].settings)


def _of_vm(node: str, run: Run, now: Mapping[str, str]) -> Iterator[str]:
    """Yield which settings of a node's VM were changed.

    Which host it runs on may change by itself, and so may keys that ESXi writes at power-on (`numa.autosize.*`,
    `sched.swap.*`): those of a VM's extra config have a dot.
    """
    then = run.cluster.vm_settings.get(node, {}) if run.cluster else {}
    for key in sorted(then.keys() & now.keys()):
        if "." not in key and not key.startswith("esxi_") and then[key] != now[key]:
            yield f"VM of {node}: {key} {then[key]} in the record, {now[key]} now"


def _nodes(run: Run) -> tuple[str, ...]:
    """Return the nodes that took part, as far as known."""
    settings = run.cluster.vm_settings if run.cluster else {}
    return tuple(settings) or tuple(dict.fromkeys(place.node for place in run.placement))
