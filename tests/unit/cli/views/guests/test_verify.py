"""What is shown of many nodes' facts: those that are alike once, those that differ each."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from vsphere_ml.cli.views.guests import verify as view
from vsphere_ml.core.diagnostics import Severity
from vsphere_ml.flows.guests.verify import Verification
from vsphere_ml.guest.facts.verify import Evidence

FACTS = tuple(f"fact {number}" for number in range(16))


def evidence(nodes: int, **bad: str) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(
            target=f"node-{at:02}",
            fact=fact,
            severity=Severity.ERROR if bad.get(f"node_{at:02}") == fact else Severity.OK,
            message=f"offset 0.{at:02} ms" if fact == "fact 3" else f"as it should be, {fact}",
            command="true",
        )
        for at in range(1, nodes + 1)
        for fact in FACTS
    )


def lines(seen: tuple[Evidence, ...], *, commands: bool = False, width: int = 120) -> list[str]:
    out = io.StringIO()
    verified = Verification(cluster="train", evidence=seen, errors={})
    console = Console(file=out, width=width, color_system=None, markup=False, highlight=False)
    console.print(view.text(verified, commands=commands))
    return out.getvalue().splitlines()


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("bad", [{}, {"node_07": "fact 5", "node_09": "fact 3"}])
def test_64_nodes_are_on_one_screen(bad: dict[str, str], width: int) -> None:
    shown = lines(evidence(64, **bad), width=width)
    assert len(shown) <= 40
    assert sum("fact 15" in line for line in shown) == 1


def test_a_node_that_differs_has_a_row_of_its_own() -> None:
    shown = [line.split() for line in lines(evidence(8, node_03="fact 5")) if "fact 5" in line]
    assert [line[0] for line in shown] == ["node-01,", "node-03"]


def test_two_nodes_are_listed_one_by_one() -> None:
    assert len(lines(evidence(2))) >= 2 * len(FACTS)


def test_every_answer_is_there_when_commands_are_wanted() -> None:
    assert sum("ms" in line for line in lines(evidence(8), commands=True)) == 8
