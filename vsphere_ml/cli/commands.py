"""The classes of commands and groups: what their help shows, and what an unknown command is answered with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from vsphere_ml import __version__
from vsphere_ml.cli.options import FILE_OPTIONS, FILE_TWICE, GLOBAL
from vsphere_ml.cli.plain_values import read_plainly

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

F = TypeVar("F", bound="Callable[..., Any]")
OPTIONS = "options"  # as in `vsml help options`
WHERE_GLOBAL = f"Global options: `vsml help {OPTIONS}`"
FOOT = f"""
`vsml help COMMAND` explains a command, `vsml help {OPTIONS}` the options of all.
New here? vsml init, check, plan, provision. No vCenter? vsml lab up"""
_LABEL, _NAME, _CELL = 13, 12, 33  # columns
SAME = {"apply": "provision"}
# What people type first who know other tools, and what it is called here.
ELSEWHERE = {
    "create": "provision",
    "delete": "destroy",
    "exec": "run -- COMMAND",
    "history": "log",
    "logs": "job logs",
    "ls": "list",
    "ps": "list",
    "remove": "destroy",
    "rm": "destroy",
    "show": "status",
    "up": "provision",
    "validate": "check",
}


class Command(TyperCommand):
    """A command whose help leaves the global options to `vsml help options`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        read_plainly(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _show_flags_without_a_value(self, ctx)
        for parameter in self.params:
            if getattr(parameter, "rich_help_panel", None) == GLOBAL:
                parameter.hidden = True  # type: ignore[attr-defined]
                self.epilog = WHERE_GLOBAL
        super().format_help(ctx, formatter)


class FileFirst(Command):
    """A command whose arguments are not FILE: a cluster file before them is taken as if `-f` stood before it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        at = self._first_argument(ctx, args)
        if at is not None and args[at].endswith(".toml"):
            options = args[: args.index("--")] if "--" in args else args
            if not ctx.resilient_parsing and any(
                each in FILE_OPTIONS or each.startswith(f"{FILE_OPTIONS[-1]}=") for each in options
            ):
                raise typer.BadParameter(FILE_TWICE, ctx=ctx, param_hint=FILE_OPTIONS[-1])
            args = [FILE_OPTIONS[-1], args[at], *args[:at], *args[at + 1 :]]
        return super().parse_args(ctx, args)

    def _first_argument(self, ctx: Any, args: list[str]) -> int | None:
        """Return where the first word is that is neither an option nor an option's value; None before `--`."""
        options = [each for each in self.get_params(ctx) if not getattr(each, "is_flag", False)]
        with_value = {name for each in options for name in each.opts if name.startswith("-")}
        for at, word in enumerate(args):
            if word == "--":
                return None
            if not word.startswith("-") and (at == 0 or args[at - 1] not in with_value):
                return at
        return None


class CommandGroup(TyperGroup):
    """A group of commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the group's options; at a TAB after words alone there are none.

        For an option that is not given typer 0.29 imports pydantic, a third of what a TAB takes.
        """
        if not ctx.resilient_parsing or any(each.startswith("-") for each in args):
            read_plainly(self.get_params(ctx))
            return super().parse_args(ctx, args)
        ctx._protected_args, ctx.args = args[:1], args[1:]  # noqa: SLF001 - where typer's groups leave them
        return args[1:]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _show_flags_without_a_value(self, ctx)
        super().format_help(ctx, formatter)


class Root(CommandGroup):
    """All commands. The names that other tools give to ours are answered with ours."""

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - click's signature
        """Print all commands by what they are for, on 24 lines of 80 columns."""
        typer.echo("\n".join(self._help_lines(ctx)))

    def _help_lines(self, ctx: Any) -> Iterator[str]:
        yield f"Usage: {ctx.command_path} [OPTIONS] COMMAND [ARGUMENTS]...\n"
        yield (self.help or "").partition("\n")[0] + "\n"
        for group, commands in self._by_group():
            cells = [f"{each.name:<{_NAME}}{each.short_help or ''}" for each in commands]
            for at in range(0, len(cells), 2):
                row = "".join(f"{cell:<{_CELL}}" for cell in cells[at : at + 2])
                yield f"{group if at == 0 else '':<{_LABEL}}{row}".rstrip()
        yield FOOT

    def _by_group(self) -> Iterable[tuple[str, list[Any]]]:
        groups: dict[str, list[Any]] = {}
        for command in self.commands.values():
            groups.setdefault(command.rich_help_panel, []).append(command)  # type: ignore[attr-defined]
        return groups.items()

    def _write_global_options(self, ctx: Any) -> str:
        formatter = ctx.make_formatter()
        records = (each.get_help_record(ctx) for each in self.params)
        with formatter.section(GLOBAL):
            formatter.write_dl([record for record in records if record is not None])
        return str(formatter.getvalue())

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the command of these words; `apply`, `help` and `version` are understood as what they name here."""
        if ctx.resilient_parsing and args[0] in {"version", "help"}:  # at a TAB
            return super().resolve_command(ctx, args[1:]) if args[0] == "help" and args[1:] else (None, None, [])
        if args[0] == "version":
            typer.echo(f"vsml {__version__}")
            raise typer.Exit
        if args[0] == "help" and args[1:] in ([], [OPTIONS]):
            typer.echo(self._write_global_options(ctx) if args[1:] else ctx.get_help())
            raise typer.Exit
        if args[0] == "help":
            args = [*args[1:], "--help"]
        try:
            return super().resolve_command(ctx, [SAME.get(args[0], args[0]), *args[1:]])
        except typer.TyperException as error:
            if args[0] in ELSEWHERE:
                error.message = f"No such command {args[0]!r}. Did you mean 'vsml {ELSEWHERE[args[0]]}'?"
            raise


class App(typer.Typer):
    """A typer app whose commands and groups are of these classes."""

    def __init__(self, *, cls: type[TyperGroup] = CommandGroup, **given: Any) -> None:
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
