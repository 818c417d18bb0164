"""`vsml configure`: brings guests to their playbooks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from vsphere_ml.core.errors import ConfigError, GuestError, VsmlError
from vsphere_ml.core.hints import Hint, hint_parts
from vsphere_ml.core.order import count
from vsphere_ml.flows.guests import boot, fetch
from vsphere_ml.flows.guests import guests as of_guests
from vsphere_ml.flows.guests.nccl import with_topologies
from vsphere_ml.flows.guests.visit import run_with_retry
from vsphere_ml.guest.converge import Convergence, StepState, check_all, converge
from vsphere_ml.guest.events import GuestEnded
from vsphere_ml.guest.playbooks.select import select_steps
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from vsphere_ml.core.model.guest import GuestFacts, Playbook, Shell
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.ports.vcenter import Guests
    from vsphere_ml.flows.guests.guests import GuestPhase, GuestTargets
    from vsphere_ml.flows.run_context import RunContext
    from vsphere_ml.guest.events import GuestListener


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestResult:
    """What became of one guest. With an error, what was done before it is reported all the same."""

    node: str
    convergences: tuple[Convergence, ...] = ()
    error: VsmlError | None = None
    log: str = ""

    @property
    def is_pending(self) -> bool:
        return any(each.pending for each in self.convergences)


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestPlan:
    """What a look at the guests found: the plan of a run."""

    cluster: str
    playbooks: tuple[Playbook, ...]
    guests: tuple[GuestResult, ...]
    unmanaged: tuple[str, ...] = ()
    after_boot: tuple[str, ...] = ()  # nodes whose guests do not run yet: every step is checked then

    def __bool__(self) -> bool:
        return bool(self.after_boot) or any(guest.is_pending for guest in self.guests)

    @property
    def steps(self) -> frozenset[str] | None:
        """Return the titles of the steps that are missing in guests; None when any step may be."""
        if self.after_boot or self.unreachable:
            return None
        return frozenset(each.step for guest in self.guests for book in guest.convergences for each in book.pending)

    @property
    def unreachable(self) -> tuple[GuestResult, ...]:
        """Return the guests that could not be asked: what is missing in them is unknown."""
        return tuple(guest for guest in self.guests if guest.error is not None)

    @property
    def concerned(self) -> tuple[str, ...]:
        """Return the nodes with something missing in their guests, or perhaps."""
        return (*self.after_boot, *(guest.node for guest in self.guests if guest.is_pending or guest.error is not None))

    def can_begin(self, rolling: int) -> tuple[str, ...]:
        """Return the nodes whose guests are worked on, so many at a time: none after one that could not be asked."""
        unreachable = {guest.node for guest in self.unreachable}
        chosen: list[str] = []
        for batch in _batches(self.concerned, rolling, self.after_boot):
            chosen += [name for name in batch if name not in unreachable]
            if rolling and not unreachable.isdisjoint(batch):
                break
        return tuple(chosen)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigureResult:
    """The end of a run."""

    plan: GuestPlan
    applied: bool
    guests: tuple[GuestResult, ...]

    @property
    def not_begun(self) -> tuple[str, ...]:
        """Return the nodes whose guests were not begun, since one before them does not match its playbooks."""
        return tuple(guest.node for guest in self.guests if guest.error is not None and guest.error.code == LEFT_OUT)

    @property
    def error(self) -> GuestError | None:
        """Return what makes this run a failure; None when every guest that was asked for is as it should be."""
        failed = [guest for guest in self.guests if guest.error is not None]
        if not failed:
            return None
        verb = "does not match its" if len(failed) == 1 else "do not match their"
        rest = f"; not begun: {', '.join(self.not_begun)}" if self.not_begun else ""
        return GuestError(
            f"{len(failed)} of {count(len(self.guests), 'guest')} of {self.plan.cluster} {verb} playbooks{rest}",
            code="guest.incomplete",
            target=self.plan.cluster,
            hint=_what_next([guest.error for guest in failed]),
            details=tuple(line for guest in failed for line in _describe_guest(guest)),
        )


def _what_next(errors: Sequence[VsmlError | None]) -> str:
    """Return what to type: what every error asks for when they agree, or else to go on."""
    codes = {error.code for error in errors if error is not None} - {LEFT_OUT}
    if codes <= {"guest.no-vm", "guest.off"}:
        return "`vsml provision` makes VMs and powers them on"
    return "the same command again goes on from here"


LEFT_OUT = "guest.left-out"
Approve: TypeAlias = "Callable[[GuestPlan], bool]"
Reached: TypeAlias = "tuple[tuple[Convergence, ...], VsmlError | None]"


def configure(
    run: RunContext,
    phase: GuestPhase,
    *,
    approve: Approve,
    only: Collection[str] = (),
    dry_run: bool = False,
) -> ConfigureResult:
    """Look at the guests, show what is missing, ask, provide it; each is believed only after a second look.

    Guests that fail are reported beside those that do not.
    """
    spec, vcenter, playbooks = run.spec, run.vcenter, phase.playbooks
    deadline = boot.start_deadline(phase.wait_s, run.clock)
    site = boot.read_running_site(run)
    found = boot.wait_ready(run, site, phase.guests, deadline, only=only, notify=phase.notify)
    found = of_guests.with_managers(found, vcenter, playbooks)
    found = with_topologies(spec, found, vcenter, playbooks)
    facts = of_guests.facts(spec, found, phase.guests, phase.given)
    fetch.refuse_missing_files(playbooks, vcenter)
    plan = plan_guests(spec, phase, found, facts, deadline.left_s)
    if dry_run or not plan:
        return ConfigureResult(plan=plan, applied=False, guests=plan.guests)
    targets = _pending_targets(plan, found)
    if not plan.can_begin(phase.rolling):
        return _result(plan, apply_to_guests(phase, targets, facts, 0.0), applied=False)
    if not approve(plan):
        return ConfigureResult(plan=plan, applied=False, guests=plan.guests)
    with vcenter.hold(spec.name):
        given = phase.given.but(fetch.fetch_files(playbooks, vcenter, run.notify, plan.steps))
        facts = of_guests.facts(spec, found, phase.guests, given)
        done = apply_to_guests(phase, targets, facts, 0.0)
    return _result(plan, done, applied=True)


def _pending_targets(plan: GuestPlan, found: GuestTargets) -> GuestTargets:
    """Return the guests with something missing, and why others could not be asked."""
    missing = {guest.node for guest in plan.guests if guest.is_pending}
    places = tuple(place for place in found.places if place.name in missing)
    errors = {guest.node: guest.error for guest in plan.guests if guest.error is not None}
    return replace(found, places=places, errors=errors)


def _result(plan: GuestPlan, done: Mapping[str, Reached | VsmlError], *, applied: bool) -> ConfigureResult:
    return ConfigureResult(plan=plan, applied=applied, guests=tuple(with_result(guest, done) for guest in plan.guests))


def plan_guests(
    spec: ClusterSpec, phase: GuestPhase, found: GuestTargets, facts: Mapping[str, GuestFacts], deadline_s: float
) -> GuestPlan:
    """Return what is missing of the playbooks in these guests, in one round trip and without a change."""
    seen = run_with_retry(
        phase.guests,
        found.places,
        lambda shell: check_all(phase.playbooks, shell, facts[shell.name]),
        deadline_s,
        notify=phase.notify,
        end=lambda node, each: GuestEnded(node=node, pending=sum(len(book.pending) for book in each)),
    )
    return GuestPlan(
        cluster=spec.name,
        playbooks=phase.playbooks,
        guests=tuple(_merge_guests(spec, found, seen, phase.guests)),
        unmanaged=found.unmanaged,
    )


def choose_steps(playbooks: Sequence[Playbook], steps: Sequence[str], from_step: str | None) -> tuple[Playbook, ...]:
    """Return the playbooks with the chosen steps alone: by number, kind or title, of one playbook as `base:packages`.

    ConfigError `guest.unknown-step` when no playbook has one of them.
    """
    if from_step is not None:
        playbooks = _steps_from(playbooks, from_step)
    if not steps:
        return tuple(playbooks)
    named = {name: [book.name for book in playbooks if _has(book, name)] for name in steps}
    for name, books in named.items():
        if not books:
            raise _unknown_step_error(name, playbooks)
    remaining = (
        (book, tuple(_strip_book_name(name, book) for name in steps if book.name in named[name])) for book in playbooks
    )
    return tuple(select_steps(book, mine) for book, mine in remaining if mine)


def _steps_from(playbooks: Sequence[Playbook], name: str) -> Sequence[Playbook]:
    """Return what comes from the first step of this name on."""
    at = next((at for at, book in enumerate(playbooks) if _has(book, name)), None)
    if at is None:
        raise _unknown_step_error(name, playbooks)
    first = playbooks[at]
    return [select_steps(first, from_step=_strip_book_name(name, first)), *playbooks[at + 1 :]]


def _has(book: Playbook, name: str) -> bool:
    try:
        return bool(select_steps(book, (_strip_book_name(name, book),)).steps)
    except ConfigError:
        return False


def _strip_book_name(name: str, book: Playbook) -> str:
    return name.removeprefix(f"{book.name}:")


def _unknown_step_error(name: str, playbooks: Sequence[Playbook]) -> ConfigError:
    titles = (f"{book.name}:{at} {step.title}" for book in playbooks for at, step in enumerate(book.steps, 1))
    return ConfigError(
        f"no playbook has a step `{name}`",
        code="guest.unknown-step",
        target=name,
        hint=f"the steps are {', '.join(titles)}",
    )


def _merge_guests(
    spec: ClusterSpec, found: GuestTargets, seen: Mapping[str, tuple[Convergence, ...] | VsmlError], guests: Guests
) -> Iterator[GuestResult]:
    """Yield the guests in the file's order."""
    for node in spec.nodes:
        outcome = seen.get(node.name) or found.errors.get(node.name)
        if isinstance(outcome, VsmlError):
            yield GuestResult(node=node.name, error=outcome, log=guests.log(node.name))
        elif outcome is not None:
            yield GuestResult(node=node.name, convergences=outcome, log=guests.log(node.name))


def apply_to_guests(
    phase: GuestPhase,
    targets: GuestTargets,
    facts: Mapping[str, GuestFacts],
    deadline_s: float,
    new: Collection[str] = (),
) -> dict[str, Reached | VsmlError]:
    """Bring guests to the playbooks, all at once or a few at a time; return what became of each.

    A few at a time, they come in the order of the facts, and a guest that cannot be reached, or does not come to what
    the playbooks say, keeps the next ones from being begun. New guests, by their nodes, are the first, all at once:
    nobody uses them yet.
    """
    done: dict[str, Reached | VsmlError] = {}
    places = {place.name: place for place in targets.places}
    for batch in _batches([name for name in facts if name in places or name in targets.errors], phase.rolling, new):
        done |= {name: targets.errors[name] for name in batch if name in targets.errors}
        here = [places[name] for name in batch if name in places]
        if failed := [name for name, each in done.items() if name not in batch and _is_failure(each)]:
            done |= {place.name: _leave_out(place.name, failed, phase.notify) for place in here}
            continue
        reached = run_with_retry(
            phase.guests,
            here,
            lambda shell: apply_playbooks(shell, phase.playbooks, facts[shell.name], phase.notify),
            deadline_s,
            notify=phase.notify,
            end=_end_of_playbooks,
        )
        done |= reached
    return done


def _batches(names: Sequence[str], size: int, new: Collection[str]) -> Iterator[Sequence[str]]:
    if not size:
        yield names
        return
    if first := [name for name in names if name in new]:
        yield first
    others = [name for name in names if name not in new]
    yield from (others[at : at + size] for at in range(0, len(others), size))


def _is_failure(reached: Reached | VsmlError) -> bool:
    """Return whether a guest that was begun, or could not be, does not match its playbooks."""
    error = reached if isinstance(reached, VsmlError) else reached[1]
    return error is not None and error.code != LEFT_OUT


def _leave_out(node: str, failed: Sequence[str], notify: GuestListener) -> GuestError:
    """Return why a guest was not begun, once that was told."""
    reason = f"not begun: {', '.join(failed)} could not be configured"
    error = GuestError(reason=reason, code=LEFT_OUT, target=node)
    notify(GuestEnded(node=node, error=error))
    return error


def apply_playbooks(shell: Shell, playbooks: Sequence[Playbook], facts: GuestFacts, notify: GuestListener) -> Reached:
    """Bring the guest to the playbooks; return what was reached, and what ended it."""
    reached: list[Convergence] = []
    for book in playbooks:
        done, error = converge(book, shell, facts, notify)
        reached.append(done)
        if error is not None:
            return tuple(reached), error
    return tuple(reached), None


def _end_of_playbooks(node: str, reached: Reached) -> GuestEnded:
    """Return how a guest's playbooks ended, for listeners."""
    changed = sum(outcome.state is StepState.CHANGED for each in reached[0] for outcome in each.outcomes)
    return GuestEnded(node=node, error=reached[1], changed=changed)


def with_result(guest: GuestResult, done: Mapping[str, Reached | VsmlError]) -> GuestResult:
    """Return the guest with what became of it; as it is when nothing was done to it."""
    outcome = done.get(guest.node)
    if outcome is None:
        return guest
    if isinstance(outcome, VsmlError):
        return replace(guest, convergences=(), error=outcome)
    return replace(guest, convergences=outcome[0], error=outcome[1])


def _describe_guest(guest: GuestResult) -> Iterator[str]:
    if guest.error is None:
        return
    yield f"{guest.node}: {guest.error.reason}"
    yield from (f"    {line}" for line in guest.error.details)
    if guest.error.hint:
        yield Hint("    hint: ", *hint_parts(guest.error.hint))
    if guest.log:
        yield f"    log: {guest.log}"
