"""`vsml verify`: what is true of the finished nodes. Writes nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.core.diagnostics import Severity
from vsphere_ml.core.errors import GuestError, VsmlError
from vsphere_ml.core.order import count, fold_names, fold_rows
from vsphere_ml.flows.guests import boot
from vsphere_ml.flows.guests import guests as of_guests
from vsphere_ml.flows.guests.visit import run_with_retry
from vsphere_ml.guest.events import GuestEnded
from vsphere_ml.guest.facts import wanted
from vsphere_ml.guest.facts.verify import verify as ask
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from vsphere_ml.flows.guests.guests import GuestPhase
    from vsphere_ml.flows.run_context import RunContext
    from vsphere_ml.guest.facts.verify import Evidence


_HINT = (
    "`vsml configure` provides what its playbooks say, and `vsml enable-ats` ATS; "
    "`vsml verify -v` has the command that shows each fact again"
)


MANY_ANSWERS = 4  # to one fact that fails; of more only an example is shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What was seen of each node, and the nodes that could not be asked. `strict`: only `ok` will do."""

    cluster: str
    evidence: tuple[Evidence, ...]
    errors: Mapping[str, VsmlError]
    strict: bool = False
    hint: str = _HINT  # where it is a failure

    @property
    def failing(self) -> tuple[Evidence, ...]:
        """Return the facts for which this is a failure."""
        return tuple(each for each in self.evidence if self._fails(each.severity))

    @property
    def error(self) -> GuestError | None:
        """Return what makes this a failure: a fact that is not so, or a node that nobody could ask."""
        if not self.failing and not self.errors:
            return None
        failed = f"{count(len(self.failing), 'fact')} {'is' if len(self.failing) == 1 else 'are'} not as required"
        unasked = f"{count(len(self.errors), 'node')} could not be asked"
        return GuestError(
            f"{self.cluster}: {'; '.join([failed] * bool(self.failing) + [unasked] * bool(self.errors))}",
            code="guest.not-verified",
            target=self.cluster,
            hint=self.hint if self.failing else "`vsml status` shows the nodes",
            details=tuple(self._describe_failures()),
        )

    def _describe_failures(self) -> Iterator[str]:
        """Yield what fails, each once with all nodes of which it is true; many answers to one fact as an example."""
        facts: dict[str, list[tuple[str, str]]] = {}
        for each in self.failing:
            facts.setdefault(f"{each.fact}: ", []).append((each.target, each.message))
        facts[""] = [(name, error.reason) for name, error in self.errors.items()]
        for fact, answers in facts.items():
            alike = list(fold_rows(answers))
            if len(alike) > MANY_ANSWERS:
                alike = [([name for name, _ in answers], f"{len(alike)} different answers, such as {alike[0][1]}")]
            yield from (f"{', '.join(fold_names(names))}: {fact}{why}" for names, why in alike)

    def _fails(self, severity: Severity) -> bool:
        return severity is not Severity.OK if self.strict else severity is Severity.ERROR


def verify(run: RunContext, phase: GuestPhase, *, only: Collection[str] = (), strict: bool = False) -> Verification:
    """Return what was seen of every fact of every node, in one round trip a node."""
    spec, deadline = run.spec, boot.start_deadline(phase.wait_s, run.clock)
    found = boot.wait_ready(run, boot.read_running_site(run), phase.guests, deadline, only=only, notify=phase.notify)
    found = replace(found, managers=of_guests.managers(found, run.vcenter))
    facts = of_guests.facts(spec, found, phase.guests, phase.given)
    want = wanted.wanted_by_playbooks(phase.playbooks)
    seen = run_with_retry(
        phase.guests,
        found.places,
        lambda shell: ask(shell, facts[shell.name], want),
        deadline.left_s,
        notify=phase.notify,
        end=_count_facts,
    )
    errors = dict(found.errors)
    evidence: list[Evidence] = []
    for name in (node.name for node in spec.nodes):
        outcome = seen.get(name, ())
        if isinstance(outcome, VsmlError):
            errors[name] = outcome
        else:
            evidence += outcome
    return Verification(cluster=spec.name, evidence=tuple(evidence), errors=errors, strict=strict)


def _count_facts(node: str, evidence: tuple[Evidence, ...]) -> GuestEnded:
    right = sum(each.severity is Severity.OK for each in evidence)
    return GuestEnded(node=node, summary=f"{right} of {len(evidence)} facts are as they should be")
