"""Writes docs/reference/cli.md from the commands themselves.

python -m tests.unit.cli.reference > docs/reference/cli.md
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from typer.main import get_command

from vsphere_ml.cli.app import assemble
from vsphere_ml.cli.options import GLOBAL

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD = """\
# The command line

Made from the commands' own help by `python -m tests.unit.cli.reference`; a test compares the two.

Options under *Global options* can stand before or after the command's name. `FILE` is `./cluster.toml` when not given.
It is the argument of most commands, and `-f FILE` of all. `run`, `ssh` and `job` take it as their first word, too, when
it ends in `.toml`: `vsml run other.toml -- uname -r`. `cp` does not, since such a file may be what is copied.
stdout is for results, everything else goes to stderr: see [json-output.md](json-output.md) and
[exit-codes.md](exit-codes.md). `vsml --install-completion` sets up completion for your shell. A TAB offers
values, too: nodes and steps of the cluster file, rules, boards, topologies, labs; it reads files, and asks no vCenter.
"""


def text() -> str:
    """Return the page."""
    root: Any = get_command(assemble())
    parts = [HEAD, "## Global options\n", _table(each for each in root.params if _is_global(each))]
    parts += ["Also `--version`, and `-h`, `--help` with every command.\n"]
    for path, command in leaves(root):
        parts += [f"## `{path}`\n", _help(command), _table(each for each in command.params if not _is_global(each))]
    return "\n".join(part for part in parts if part)


def names() -> list[str]:
    """Return every command's name as it is typed after `vsml`."""
    return [path.removeprefix("vsml ") for path, _ in leaves(get_command(assemble()))]


def leaves(command: Any, path: str = "vsml") -> Iterator[tuple[str, Any]]:
    """Yield every command with its full name."""
    children = getattr(command, "commands", None)
    if not children:
        yield path, command
        return
    for name, child in children.items():
        yield from leaves(child, f"{path} {name}")


def _is_global(parameter: Any) -> bool:
    return getattr(parameter, "rich_help_panel", None) == GLOBAL


def _help(command: Any) -> str:
    return str(command.help).strip() + "\n"


def _table(parameters: Iterator[Any]) -> str:
    rows = [f"| {_name(each)} | {each.help or ''}{_default(each)} |" for each in parameters if each.name != "help"]
    rows = [row for row in rows if "completion`" not in row and "`--version`" not in row]
    return "\n".join(["| | |", "|---|---|", *rows, ""]) if rows else ""


def _name(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{parameter.name.upper()}`"
    metavar = f" `{parameter.metavar}`".replace("|", "\\|") if parameter.metavar else ""
    return ", ".join(f"`{each}`" for each in parameter.opts) + metavar


def _default(parameter: Any) -> str:
    if isinstance(parameter.show_default, str) and parameter.default == 0:  # which means something else
        return f" Default: {parameter.show_default}."
    if parameter.default in (None, False) or parameter.param_type_name == "argument":
        return ""
    return f" Default: `{parameter.default}`."


if __name__ == "__main__":
    sys.stdout.write(text())
