"""The classes of commands and groups: what their help shows, and what an unknown command is answered with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from vsphere_ml.cli.options import GLOBAL

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")
WHERE_GLOBAL = "Global options: `vsml --help`"
# What people type first who know other tools, and what it is called here.
ELSEWHERE = {
    "apply": "provision",
    "create": "provision",
    "delete": "destroy",
    "exec": "run -- COMMAND",
    "help": "--help",
    "list": "status",
    "logs": "run -- journalctl -n 50",
    "ls": "status",
    "ps": "status",
    "rm": "destroy",
    "validate": "check",
    "version": "--version",
}


class Command(TyperCommand):
    """A command whose help leaves the global options to `vsml --help`."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _show_flags_without_a_value(self, ctx)
        for parameter in self.params:
            if getattr(parameter, "rich_help_panel", None) == GLOBAL:
                parameter.hidden = True  # type: ignore[attr-defined]
                self.epilog = WHERE_GLOBAL
        super().format_help(ctx, formatter)


class Group(TyperGroup):
    """A group of commands."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _show_flags_without_a_value(self, ctx)
        super().format_help(ctx, formatter)


class Root(Group):
    """All commands. The names that other tools give to ours are answered with ours."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except typer.TyperException as error:
            if args[0] in ELSEWHERE:
                error.message = f"No such command {args[0]!r}. Did you mean 'vsml {self._ours(args)}'?"
            raise

    def _ours(self, args: list[str]) -> str:
        if args[0] == "help" and args[1:] and args[1] in self.commands:
            return f"{args[1]} --help"
        return ELSEWHERE[args[0]]


class App(typer.Typer):
    """A typer app whose commands and groups are of these classes."""

    def __init__(self, *, cls: type[TyperGroup] = Group, **given: Any) -> None:
        super().__init__(cls=cls, **given)

    def command(
        self, name: str | None = None, *, cls: type[TyperCommand] | None = Command, **given: Any
    ) -> Callable[[F], F]:
        return super().command(name, cls=cls, **given)


def _show_flags_without_a_value(command: TyperCommand | TyperGroup, ctx: Any) -> None:
    # typer 0.29 shows `<bool>` after a flag, as if it took a value.
    for parameter in command.get_params(ctx):
        if getattr(parameter, "is_flag", False) and parameter.metavar is None:
            parameter.metavar = ""
