"""Applies a playbook in a guest: look, apply what is missing, look again. An apply is believed only once seen."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import GuestError, VsmlError
from vsphere_ml.core.model.guest import StepNeed
from vsphere_ml.guest.events import Applied, Applying, GuestChecked, Rebooting
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vsphere_ml.core.model.guest import CommandAnswer, GuestFacts, Playbook, Probe, Shell, Step
    from vsphere_ml.guest.events import GuestListener


class StepState(StrEnum):
    OK = "ok"  # it was so already
    CHANGED = "changed"  # it was missing, and was provided
    PENDING = "pending"  # only a check says this


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutcome:
    """What became of one step on one guest; `drift` is what the first look found."""

    step: str
    state: StepState
    drift: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Convergence:
    """What became of a playbook on one guest."""

    node: str
    playbook: str
    digest: str
    outcomes: tuple[StepOutcome, ...]
    rebooted: bool = False

    @property
    def changed(self) -> bool:
        return any(each.state is StepState.CHANGED for each in self.outcomes)

    @property
    def pending(self) -> tuple[StepOutcome, ...]:
        return tuple(each for each in self.outcomes if each.state is StepState.PENDING)


def check_all(playbooks: Sequence[Playbook], probe: Probe, facts: GuestFacts) -> tuple[Convergence, ...]:
    """Return what is missing of each playbook in the guest, in one round trip for all of them and without a change."""
    seen = iter(_ask(probe, [step for book in playbooks for step in book.steps], facts).values())
    return tuple(
        Convergence(
            node=facts.name,
            playbook=book.name,
            digest=book.digest,
            outcomes=tuple(_outcome(step, next(seen), facts) for step in book.steps),
        )
        for book in playbooks
    )


def _outcome(step: Step, seen: Mapping[str, CommandAnswer], facts: GuestFacts) -> StepOutcome:
    missing = step.drift(seen, facts)
    return StepOutcome(step=step.title, state=StepState.OK if missing is None else StepState.PENDING, drift=missing)


def converge(
    playbook: Playbook, shell: Shell, facts: GuestFacts, notify: GuestListener
) -> tuple[Convergence, VsmlError | None]:
    """Bring the guest to the playbook; return what became of each step, and the error of the first that fails.

    What was changed before it is counted all the same. A guest that needs nothing costs one round trip. Steps that ask
    for a reboot get one between them, after the others; those that need what the reboot brings are left for after it.
    """
    run = _Run(playbook, shell, facts, notify)
    try:
        run.run_all()
    except VsmlError as error:
        return run.convergence(), error
    return run.convergence(), None


@dataclass(slots=True)
class _Run:
    playbook: Playbook
    shell: Shell
    facts: GuestFacts
    notify: GuestListener
    drifts: dict[int, str] = field(default_factory=dict)
    applied: set[int] = field(default_factory=set)
    rebooted: bool = False

    def run_all(self) -> None:
        """Provide what is missing, with a reboot where steps ask for one."""
        wanting = self.once()
        if wanting:
            self.notify(Rebooting(node=self.facts.name, because=wanting))
            self.shell.reboot()
            self.rebooted = True
            again = self.once()
            if again:
                raise _step_error(self.facts, again[0], "it asks for a reboot again right after one")
        if self.applied:
            self.settled()

    def once(self) -> tuple[str, ...]:
        """Provide in order what is missing; return the steps that want a reboot."""
        seen = _ask(self.shell, self.playbook.steps, self.facts)
        gaps = [step.drift(seen[at], self.facts) for at, step in enumerate(self.playbook.steps)]
        pending = sum(missing is not None for missing in gaps)
        self.notify(
            GuestChecked(
                node=self.facts.name, playbook=self.playbook.name, steps=len(self.playbook.steps), pending=pending
            )
        )
        for at, missing in enumerate(gaps):
            if missing is not None:
                self.drifts.setdefault(at, missing)
        wanting: list[str] = []
        for at, step in enumerate(self.playbook.steps):
            missing = step.drift(seen[at], self.facts)
            if missing is None or (wanting and step.AFTER_REBOOT):
                continue
            self.drifts.setdefault(at, missing)
            need = self._apply(at, missing)
            self.applied.add(at)  # before it is looked at: where the connection breaks now, it is changed all the same
            seen = _ask(self.shell, self.playbook.steps, self.facts, start=at)
            if need is StepNeed.REBOOT:
                wanting.append(step.title)
            else:
                self._believe(at, seen[at])
            self.notify(Applied(node=self.facts.name, step=step.title, needs_reboot=need is StepNeed.REBOOT))
        return tuple(wanting)

    def settled(self) -> None:
        """Look once more at everything: a step must not undo what an earlier one did."""
        seen = _ask(self.shell, self.playbook.steps, self.facts)
        for at, step in enumerate(self.playbook.steps):
            missing = step.drift(seen[at], self.facts)
            if missing is not None:
                raise _step_error(self.facts, step.title, f"a later step undid it: {missing}")

    def convergence(self) -> Convergence:
        outcomes = tuple(
            StepOutcome(step=step.title, state=self._state(at), drift=self.drifts.get(at))
            for at, step in enumerate(self.playbook.steps)
        )
        return Convergence(
            node=self.facts.name,
            playbook=self.playbook.name,
            digest=self.playbook.digest,
            outcomes=outcomes,
            rebooted=self.rebooted,
        )

    def _state(self, at: int) -> StepState:
        if at in self.applied:
            return StepState.CHANGED
        return StepState.PENDING if at in self.drifts else StepState.OK

    def _apply(self, at: int, missing: str) -> StepNeed:
        step, count = self.playbook.steps[at], len(self.playbook.steps)
        self.notify(
            Applying(
                node=self.facts.name,
                playbook=self.playbook.name,
                number=at + 1,
                steps=count,
                step=step.title,
                drift=missing,
            )
        )
        try:
            return step.apply(self.shell, self.facts)
        except GuestError as error:
            raise _error_in_step(step.title, error) from error

    def _believe(self, at: int, seen: Mapping[str, CommandAnswer]) -> None:
        step = self.playbook.steps[at]
        missing = step.drift(seen, self.facts)
        if missing is not None:
            self.applied.discard(at)
            commands = tuple(f"asked: {each}" for each in step.probes(self.facts).values())
            raise _step_error(self.facts, step.title, f"it was applied, and still {missing}", commands)


def _ask(probe: Probe, steps: Sequence[Step], facts: GuestFacts, start: int = 0) -> dict[int, dict[str, CommandAnswer]]:
    """Ask everything that the steps from `start` on want to know, in one round trip."""
    names = {
        f"{at}.{name}": (at, name, command)
        for at, step in enumerate(steps)
        if at >= start
        for name, command in step.probes(facts).items()
    }
    seen: dict[int, dict[str, CommandAnswer]] = {at: {} for at in range(start, len(steps))}
    if not names:
        return seen
    answers = probe.ask({key: command for key, (_, _, command) in names.items()})
    for key, (at, name, _) in names.items():
        seen[at][name] = answers[key]
    return seen


def _error_in_step(step: str, error: GuestError) -> GuestError:
    """Return the error with the step it came up in. What is no command's failure keeps its code."""
    failed = error.code == "guest.command-failed"
    return GuestError(
        reason=f"step `{step}`{' failed' if failed else ''}: {error.reason}",
        code="guest.step-failed" if failed else error.code,
        target=error.target,
        hint=error.hint,
        details=error.details,
    )


def _step_error(facts: GuestFacts, step: str, why: str, details: tuple[str, ...] = ()) -> GuestError:
    return GuestError(
        reason=f"step `{step}` failed: {why}", code="guest.step-failed", target=facts.name, details=details
    )
