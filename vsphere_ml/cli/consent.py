"""Asks before anything is written, or refuses with the plan shown where nobody can be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from vsphere_ml.core.errors import ConfigError, VsmlError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from rich.console import RenderableType

    from vsphere_ml.cli.terminal import Terminal

T = TypeVar("T")

QUESTION = "Continue?"


class Declined(VsmlError):  # noqa: N818 - reads as what it says
    """The person said no."""

    status = 130


def is_confirmed(terminal: Terminal, *, yes: bool) -> bool:
    """Return whether a plan was agreed to on the command line, or somebody can be asked."""
    return yes or terminal.interactive


def _no_names(_plan: object) -> Collection[str]:
    return ()


def approval(
    terminal: Terminal,
    text: Callable[[T], RenderableType],
    *,
    yes: bool,
    names: Callable[[T], Collection[str]] = _no_names,
    impact: Callable[[T], str] = lambda _: "",
) -> Callable[[T], bool]:
    """Return what shows a plan and decides on it; a no is raised as an error, so that no one takes it for done.

    What it interrupts and deletes, its `impact`, is stated last. Where a plan has `names`, these are typed instead of a
    yes: what is deleted does not come back. ConfigError `confirm.needed` where nobody can be asked.
    """
    shown: list[T] = []

    def approve(plan: T) -> bool:
        if shown:
            terminal.say("the site has changed since that plan was shown; this is what would be done now")
        shown.append(plan)
        show(terminal, text(plan), impact(plan))
        if not is_confirmed(terminal, yes=yes):
            raise _confirm_needed()
        if yes or _ask_for_consent(terminal, names(plan)):
            return True
        raise Declined("declined; nothing was changed", code="confirm.declined")

    return approve


def show(terminal: Terminal, text: RenderableType, impact: str) -> None:
    """Show a plan, and last what it interrupts and deletes."""
    terminal.say(text)
    if impact:
        terminal.say(impact)


def _confirm_needed() -> ConfigError:
    return ConfigError(
        "this plan changes the site, and there is no terminal to ask on; nothing was changed",
        code="confirm.needed",
        hint="add --yes to go on without asking, or --dry-run to see the plan only",
    )


def _ask_for_consent(terminal: Terminal, names: Collection[str]) -> bool:
    if not names:
        return terminal.ask(QUESTION)
    typed = terminal.answer(f"To go on, type the names of the VMs to delete ({', '.join(sorted(names))}): ")
    return set((typed or "").replace(",", " ").split()) == set(names)
