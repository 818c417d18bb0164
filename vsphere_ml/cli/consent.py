"""Asks before anything is written, or refuses at once where nobody can be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from vsphere_ml.core.errors import ConfigError, VsmlError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import RenderableType

    from vsphere_ml.cli.terminal import Terminal

T = TypeVar("T")

QUESTION = "Continue?"


class Declined(VsmlError):  # noqa: N818 - reads as what it says
    """The person said no."""

    status = 130


def needed(terminal: Terminal, *, yes: bool) -> None:
    """Refuse, before anything is read or connected, a writing command that can neither ask nor was told yes."""
    if not yes and not terminal.interactive:
        raise ConfigError(
            "this command changes the site, and there is no terminal to ask on",
            code="confirm.needed",
            hint="add --yes to go on without asking, or --dry-run to see the plan only",
        )


def approval(terminal: Terminal, text: Callable[[T], RenderableType], *, yes: bool) -> Callable[[T], bool]:
    """Return what shows a plan and decides on it; a no is raised as an error, so that no one takes it for done."""
    shown: list[T] = []

    def approve(plan: T) -> bool:
        if shown:
            terminal.say("the site has changed since that plan was shown; this is what would be done now")
        shown.append(plan)
        terminal.say(text(plan))
        if yes or terminal.ask(QUESTION):
            return True
        raise Declined("declined; nothing was changed", code="confirm.declined")

    return approve
