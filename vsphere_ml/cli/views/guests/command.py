"""What a command said on all nodes, equal answers together."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from rich.console import Group

from vsphere_ml.cli.views.layout.envelope import as_data
from vsphere_ml.cli.views.layout.text import keep_lines, line
from vsphere_ml.core.order import count, fold_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.text import Text

    from vsphere_ml.cli.views.layout.envelope import ErrorFields
    from vsphere_ml.flows.guests.command import CommandResult


class _AnswerGroup(TypedDict):
    nodes: tuple[str, ...]
    status: int
    out: str
    err: str


class RunData(TypedDict):
    """What a command said, equal answers together, and the errors of nodes on which it could not be run."""

    cluster: str
    groups: list[_AnswerGroup]
    unreachable: dict[str, ErrorFields]


def text(said: CommandResult) -> Group:
    """Return each answer under the nodes that gave it."""
    return Group(*_parts(said))


def data(said: CommandResult) -> RunData:
    """Return the answers' fields."""
    return {
        "cluster": said.cluster,
        "groups": [
            {
                "nodes": group.nodes,
                "status": group.answer.status,
                "out": group.answer.out,
                "err": group.answer.err,
            }
            for group in said.groups
        ],
        "unreachable": {name: as_data(error) for name, error in said.errors.items()},
    }


def _parts(said: CommandResult) -> Iterator[Text]:
    for group in said.groups:
        status = "" if group.answer.ok else f", exit status {group.answer.status}"
        yield line((", ".join(fold_names(group.nodes)), "bold"), f" ({count(len(group.nodes), 'node')}{status})")
        for printed in (group.answer.out, group.answer.err):
            if printed.strip("\n"):
                yield keep_lines(printed.rstrip("\n"))
