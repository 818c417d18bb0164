"""`vsml configure`: brings guests to their playbooks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from vsphere_ml.core.errors import ConfigError, GuestError, VsmlError
from vsphere_ml.flows import guests as of_guests
from vsphere_ml.guest.converge import Convergence, check_all, converge
from vsphere_ml.guest.select import Selection

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from vsphere_ml.core.events import Listener
    from vsphere_ml.core.guest import GuestFacts, Playbook, Shell
    from vsphere_ml.core.ports import Clock, Guests, VCenter
    from vsphere_ml.core.spec import ClusterSpec
    from vsphere_ml.flows.guests import Found, Given
    from vsphere_ml.guest.events import GuestListener


@dataclass(frozen=True, slots=True, kw_only=True)
class Guest:
    """What became of one guest. With an error, the playbooks before it are told all the same."""

    node: str
    convergences: tuple[Convergence, ...] = ()
    error: VsmlError | None = None
    log: str = ""

    @property
    def lacks(self) -> bool:
        return any(each.lacking for each in self.convergences)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """What a look at the guests found: the plan of a run."""

    cluster: str
    playbooks: tuple[Playbook, ...]
    guests: tuple[Guest, ...]
    strangers: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any(guest.lacks for guest in self.guests)


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured:
    """The end of a run."""

    plan: Lacking
    acted: bool
    guests: tuple[Guest, ...]

    @property
    def error(self) -> GuestError | None:
        """Return what makes this run a failure; None when every guest that was asked for is as it should be."""
        failed = [guest for guest in self.guests if guest.error is not None]
        if not failed:
            return None
        return GuestError(
            f"{len(failed)} of {len(self.guests)} guests of {self.plan.cluster} are not as their playbooks say",
            code="guest.incomplete",
            target=self.plan.cluster,
            hint="`vsml configure` again goes on from here",
            details=tuple(line for guest in failed for line in _told(guest)),
        )


Approve: TypeAlias = "Callable[[Lacking], bool]"


def configure(
    spec: ClusterSpec,
    playbooks: Sequence[Playbook],
    vcenter: VCenter,
    guests: Guests,
    *,
    given: Given,
    approve: Approve,
    tell: Listener,
    tell_guest: GuestListener,
    clock: Clock,
    only: Collection[str] = (),
    wait_s: float = 300.0,
    dry_run: bool = False,
) -> Configured:
    """Look at the guests, show what they lack, ask, provide it; each is believed only after a second look.

    Guests that fail are told beside those that do not.
    """
    found = of_guests.settled(of_guests.find(spec, vcenter, tell, clock, only, wait_s), guests, wait_s)
    facts = of_guests.facts(spec, found, guests, given)
    seen = of_guests.patiently(
        guests, found.places, lambda shell: check_all(playbooks, shell, facts[shell.name]), wait_s
    )
    plan = Lacking(
        cluster=spec.name,
        playbooks=tuple(playbooks),
        guests=tuple(_checked(spec, found, seen, guests)),
        strangers=found.strangers,
    )
    if dry_run or not plan or not approve(plan):
        return Configured(plan=plan, acted=False, guests=plan.guests)
    lacking = {guest.node for guest in plan.guests if guest.lacks}
    places = [place for place in found.places if place.name in lacking]
    with vcenter.hold(spec.name):
        done = guests.each(places, lambda shell: _converge(shell, playbooks, facts[shell.name], tell_guest))
    return Configured(plan=plan, acted=True, guests=tuple(_after(guest, done) for guest in plan.guests))


def chosen(playbooks: Sequence[Playbook], steps: Sequence[str], from_step: str | None) -> tuple[Playbook, ...]:
    """Return the playbooks with the chosen steps alone: by number, kind or title, of one playbook as `base:packages`.

    ConfigError `guest.unknown-step` when no playbook has one of them.
    """
    if from_step is not None:
        playbooks = _from(playbooks, from_step)
    if not steps:
        return tuple(playbooks)
    named = {name: [book.name for book in playbooks if _has(book, name)] for name in steps}
    for name, books in named.items():
        if not books:
            raise _unknown(name, playbooks)
    kept = ((book, tuple(_bare(name, book) for name in steps if book.name in named[name])) for book in playbooks)
    return tuple(replace(book, steps=Selection(steps=mine).of(book)) for book, mine in kept if mine)


def _from(playbooks: Sequence[Playbook], name: str) -> Sequence[Playbook]:
    """Return what comes from the first step of this name on."""
    at = next((at for at, book in enumerate(playbooks) if _has(book, name)), None)
    if at is None:
        raise _unknown(name, playbooks)
    first = playbooks[at]
    return [replace(first, steps=Selection(from_step=_bare(name, first)).of(first)), *playbooks[at + 1 :]]


def _has(book: Playbook, name: str) -> bool:
    try:
        return bool(Selection(steps=(_bare(name, book),)).of(book))
    except ConfigError:
        return False


def _bare(name: str, book: Playbook) -> str:
    return name.removeprefix(f"{book.name}:")


def _unknown(name: str, playbooks: Sequence[Playbook]) -> ConfigError:
    titles = (f"{book.name}:{at} {step.title}" for book in playbooks for at, step in enumerate(book.steps, 1))
    return ConfigError(
        f"no playbook has a step `{name}`",
        code="guest.unknown-step",
        target=name,
        hint=f"the steps are {', '.join(titles)}",
    )


def _checked(
    spec: ClusterSpec, found: Found, seen: Mapping[str, tuple[Convergence, ...] | VsmlError], guests: Guests
) -> Iterator[Guest]:
    """Yield the guests in the file's order."""
    for node in spec.nodes:
        outcome = seen.get(node.name) or found.errors.get(node.name)
        if isinstance(outcome, VsmlError):
            yield Guest(node=node.name, error=outcome, log=guests.log(node.name))
        elif outcome is not None:
            yield Guest(node=node.name, convergences=outcome, log=guests.log(node.name))


def _converge(
    shell: Shell, playbooks: Sequence[Playbook], facts: GuestFacts, tell: GuestListener
) -> tuple[tuple[Convergence, ...], VsmlError | None]:
    """Return what was reached, and what ended it."""
    reached: list[Convergence] = []
    for book in playbooks:
        try:
            reached.append(converge(book, shell, facts, tell))
        except VsmlError as error:
            return tuple(reached), error
    return tuple(reached), None


def _after(guest: Guest, done: Mapping[str, tuple[tuple[Convergence, ...], VsmlError | None] | VsmlError]) -> Guest:
    outcome = done.get(guest.node)
    if outcome is None:
        return guest
    if isinstance(outcome, VsmlError):
        return replace(guest, convergences=(), error=outcome)
    return replace(guest, convergences=outcome[0], error=outcome[1])


def _told(guest: Guest) -> Iterator[str]:
    if guest.error is None:
        return
    message = guest.error.message
    yield message if guest.node in message else f"{guest.node}: {message}"
    yield from (f"    {line}" for line in guest.error.details)
    if guest.error.hint:
        yield f"    hint: {guest.error.hint}"
    if guest.log:
        yield f"    log: {guest.log}"
