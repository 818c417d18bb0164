"""The cluster file that a run was given, named in every command of vsml that the run's hints say to type."""

from __future__ import annotations

import shlex
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from vsphere_ml.cli.options import DEFAULT_FILE, FILE_OPTIONS
from vsphere_ml.core.hints import CommandLine, Hint, hint_parts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FILE: ContextVar[Path | None] = ContextVar("cluster file", default=None)
_PROGRAM = "vsml"


@contextmanager
def given_file(file: Path | None) -> Iterator[None]:
    """Have the hints of this run name its file; the default needs no name, and None is of a run without a file."""
    token = _FILE.set(None if file == DEFAULT_FILE else file)
    try:
        yield
    finally:
        _FILE.reset(token)


def name_file(hint: str) -> str:
    """Return a hint whose commands of vsml name the run's file, where they take one and have none yet."""
    if (file := _FILE.get()) is None or not hint:
        return hint
    return Hint(*(_name_in_command(part, file) if isinstance(part, CommandLine) else part for part in hint_parts(hint)))


def name_file_in_data(value: Any) -> Any:
    """Return JSON data in which every field `hint` names the run's file."""
    if _FILE.get() is None:
        return value
    if isinstance(value, list):
        return [name_file_in_data(each) for each in value]
    if not isinstance(value, dict):
        return name_file(value) if isinstance(value, Hint) else value
    return {
        key: name_file(each) if key == "hint" and isinstance(each, str) else name_file_in_data(each)
        for key, each in value.items()
    }


def _name_in_command(line: CommandLine, file: Path) -> CommandLine:
    try:
        program, *words = shlex.split(line)
    except ValueError:  # no words, or a quote that does not end
        return line
    names, option = _place_of_file(words) if program == _PROGRAM else ([], None)
    begin = " ".join((_PROGRAM, *names))
    if option is None or not line.startswith(begin):
        return line
    return CommandLine(f"{begin} {option}{shlex.quote(str(file))}{line[len(begin) :]}")


def _place_of_file(words: list[str]) -> tuple[list[str], str | None]:
    """Return the words that name a command, and what comes before its file: `-f ` or nothing.

    None for a command that takes no cluster file, or has one.
    """
    command, names = _find_command(words)
    parameter = next((each for each in command.params if each.name == "file"), None)
    if parameter is None:
        return names, None
    with command.make_context(_PROGRAM, words[len(names) :], resilient_parsing=True) as context:
        sources = (context.get_parameter_source(each) for each in ("file", "file_option"))
        if any(source is not None and source.name == "COMMANDLINE" for source in sources):
            return names, None
    return names, "" if parameter.param_type_name == "argument" else f"{FILE_OPTIONS[0]} "


def _find_command(words: list[str]) -> tuple[Any, list[str]]:
    """Return the command that these words begin with, and the words that name it; one that is left out has none."""
    import typer

    from vsphere_ml.cli.app import assemble

    command: Any = typer.main.get_command(assemble(words[:1]))
    names: list[str] = []
    for word in words:
        if word not in getattr(command, "commands", {}):
            break
        command = command.commands[word]
        names.append(word)
    default = getattr(command, "default", None)
    return getattr(command, "commands", {}).get(default, command), names
