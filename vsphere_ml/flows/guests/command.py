"""`vsml run`: one command in every guest, what it said grouped by equality."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import GuestError, VsmlError
from vsphere_ml.core.hints import CommandLine, Hint
from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.core.order import fold_names
from vsphere_ml.core.units import parse_integer
from vsphere_ml.flows.guests.guests import fold_errors
from vsphere_ml.flows.guests.visit import run_with_retry
from vsphere_ml.guest.events import GuestEnded
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from vsphere_ml.core.model.guest import Shell
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.ports.vcenter import GuestPlace, Guests
    from vsphere_ml.flows.guests.guests import GuestTargets
    from vsphere_ml.guest.events import GuestListener


# What the kernel's refusals are called by the C library, and what apt and others add.
_DENIED = ("permission denied", "operation not permitted", "are you root", "must be root")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerGroup:
    """Nodes that answered the same."""

    nodes: tuple[str, ...]
    answer: CommandAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """What a command said: groups of equal answers, the largest first, and the nodes it could not be run on."""

    cluster: str
    groups: tuple[AnswerGroup, ...]
    errors: Mapping[str, VsmlError]
    as_root: bool = False

    @property
    def error(self) -> GuestError | None:
        failed = [name for group in self.groups if not group.answer.ok for name in group.nodes]
        if not failed and not self.errors:
            return None
        return GuestError(
            f"{self.cluster}: {_describe_failures(failed, self.errors)}",
            code="guest.run-failed",
            target=self.cluster,
            hint=Hint("as root: ", CommandLine("vsml run --sudo -- COMMAND")) if self._is_denied else "",
            details=fold_errors(self.errors),
        )

    @property
    def _is_denied(self) -> bool:
        """Return whether a user who is not root was refused something somewhere."""
        failed = [group.answer for group in self.groups if not group.answer.ok]
        return not self.as_root and any(words in answer.err.lower() for answer in failed for words in _DENIED)


def _describe_failures(failed: Collection[str], unreachable: Collection[str]) -> str:
    parts = (("the command failed on", failed), ("no exit status from", unreachable))
    return "; ".join(f"{what} {', '.join(fold_names(nodes))}" for what, nodes in parts if nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownPlaces:
    """Where guests answered in an earlier run; `find` asks vCenter for the others, and for those that moved."""

    known: Mapping[str, GuestPlace]
    find: Callable[[Collection[str]], GuestTargets]


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestCommand:
    """What is run in each guest: as the user who signs in, or as root."""

    text: str
    as_root: bool = False
    timeout_s: float = 600.0


def run(
    spec: ClusterSpec,
    command: GuestCommand,
    guests: Guests,
    *,
    places: KnownPlaces,
    notify_guest: GuestListener,
) -> CommandResult:
    """Run the command in every guest at once, and return what it said."""
    known = places.known

    def ask(places: Sequence[GuestPlace]) -> dict[str, CommandAnswer | VsmlError]:
        return run_with_retry(
            guests,
            places,
            lambda shell: _run(shell, command),
            0.0,
            notify=notify_guest,
            end=lambda node, answer: GuestEnded(node=node, summary=f"ended with status {answer.status}"),
        )

    names = [node.name for node in spec.nodes]
    if not set(names) <= set(known):
        found = places.find(names)
        return _group_answers(spec, command, {**found.errors, **ask(found.places)})
    seen = ask([known[name] for name in names])
    if moved := [name for name, outcome in seen.items() if _not_reached(outcome)]:
        found = places.find(moved)
        seen |= found.errors
        seen |= ask([place for place in found.places if place.address != known[place.name].address])
    return _group_answers(spec, command, seen)


def _not_reached(outcome: CommandAnswer | VsmlError) -> bool:
    """Return whether the command was not begun, because another machine or none answers at that address."""
    return isinstance(outcome, VsmlError) and outcome.code in {"guest.unreachable", "guest.host-key-changed"}


def _group_answers(
    spec: ClusterSpec, command: GuestCommand, seen: Mapping[str, CommandAnswer | VsmlError]
) -> CommandResult:
    nodes: dict[CommandAnswer, list[str]] = {}
    errors: dict[str, VsmlError] = {}
    for name, outcome in seen.items():
        if isinstance(outcome, VsmlError):
            errors[name] = outcome
        else:
            nodes.setdefault(outcome, []).append(name)
    groups = sorted(nodes.items(), key=lambda item: -len(item[1]))
    return CommandResult(
        cluster=spec.name,
        groups=tuple(AnswerGroup(nodes=tuple(names), answer=answer) for answer, names in groups),
        errors=errors,
        as_root=command.as_root,
    )


def _run(shell: Shell, command: GuestCommand) -> CommandAnswer:
    """Return the command's answer, also when it failed: its status is the last line of what is printed."""
    # In a subshell, so that it may exit, and need not be a program more to start.
    text = f"(eval {shlex.quote(f' {command.text}')}); s=$?; echo; echo $s"
    try:
        answer = shell.run(text, timeout_s=command.timeout_s, as_root=command.as_root)
    except GuestError as error:
        if error.code != "guest.timeout":
            raise
        raise _timeout_error(shell.name, command, error.details) from error
    out, _, last = answer.out.removesuffix("\n").rpartition("\n")
    status = parse_integer(last)
    if status is None:
        raise GuestError(
            reason="the command printed more than can be kept",
            code="guest.unexpected-output",
            target=shell.name,
            hint=f"{shlex.quote(command.text)} > FILE, and look at the file with `vsml ssh {shell.name}`",
        )
    return CommandAnswer(status, out.removesuffix("\n"), answer.err)


def _timeout_error(node: str, command: GuestCommand, last_lines: tuple[str, ...]) -> GuestError:
    return GuestError(
        reason=f"the command had not ended after {command.timeout_s:g} s",
        code="guest.timeout",
        target=node,
        hint="--max-time SECONDS waits longer",
        details=last_lines,
    )
