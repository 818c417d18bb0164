"""`vsml rules`: which combinations are legal, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from vsphere_ml.cli import completion
from vsphere_ml.cli.commands import App
from vsphere_ml.cli.default_group import DefaultGroup
from vsphere_ml.cli.options import command
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from vsphere_ml.cli.views.site.rules import RuleData

LIST = "list"


class _RulesGroup(DefaultGroup):
    """`vsml rules` means `vsml rules list`."""

    default = LIST


app = App(cls=_RulesGroup, help="List the rules that combinations of GPU, NIC, VM and ESXi keep, and explain them.")


@app.command(LIST)
@command
def list_rules(_terminal: Terminal) -> Answer["list[RuleData]"]:
    """List the rules: what each says, how serious it is, and from which versions on it holds.

    Example: `vsml rules`
    """
    from vsphere_ml.cli.views.site import rules as view
    from vsphere_ml.core.rules.table import RULES

    return Answer(text=view.table(RULES), data=[view.data(rule) for rule in RULES])


@app.command()
@command
def why(
    _terminal: Terminal,
    rule: Annotated[
        str, typer.Argument(metavar="RULE", help="The rule's id or number.", autocompletion=completion.rules)
    ],
) -> Answer["RuleData"]:
    """Explain a rule: what it says, who keeps it, and the documents it comes from.

    Example: `vsml rules why gpudirect-rdma`
    """
    from vsphere_ml.cli.views.site import rules as view
    from vsphere_ml.core.rules.table import find

    found = find(rule)
    return Answer(text=view.text(found), data=view.data(found))
