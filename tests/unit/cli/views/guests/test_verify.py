"""What is shown of many nodes' facts: those that are alike once, those that differ each."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from vsphere_ml.cli.views.guests import verify as view
from vsphere_ml.cli.views.layout import error as error_view
from vsphere_ml.core.diagnostics import Severity
from vsphere_ml.core.errors import GuestError
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


def screen(verified: Verification, width: int) -> list[str]:
    """Return all that is shown of a verification that failed."""
    assert verified.error is not None
    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None, markup=False, highlight=False)
    console.print(view.text(verified), error_view.text(verified.error))
    return out.getvalue().splitlines()


@pytest.mark.parametrize("message", ["sh: nvidia-smi: not found", "GPU 0000:02:00.{at}: no licence"])
def test_64_nodes_of_which_all_fail_are_on_one_screen(message: str) -> None:
    failing = tuple(
        replace(each, severity=Severity.ERROR, message=message.format(at=at))
        for at, each in enumerate(evidence(64))
        if each.fact in FACTS[:4]
    )
    unasked = {f"node-{at}": GuestError(reason="no answer", code="guest.unreachable") for at in range(65, 90)}
    verified = Verification(cluster="train", evidence=(*failing, *evidence(64)[64:]), errors=unasked)
    shown = screen(verified, 80)
    assert len(shown) <= 40
    assert verified.error is not None
    assert [each for each in verified.error.details if each.startswith("node-[65-89]")]
    assert sum(each.startswith("node-[01-64]") for each in verified.error.details) == 4


def test_a_failure_says_of_what_there_is_any() -> None:
    fault = GuestError(reason="no answer", code="guest.unreachable", target="node-3")
    unasked = Verification(cluster="train", evidence=evidence(2), errors={"node-3": fault}).error
    failed = Verification(cluster="train", evidence=evidence(2, node_01="fact 1"), errors={}).error
    assert unasked is not None
    assert failed is not None
    assert "fact" not in unasked.message
    assert "asked" not in failed.message
    assert unasked.hint != failed.hint


def test_a_node_that_differs_has_a_row_of_its_own() -> None:
    shown = [line.split() for line in lines(evidence(8, node_03="fact 5")) if "fact 5" in line]
    assert [line[0] for line in shown] == ["node-01,", "node-03"]


def test_two_nodes_are_listed_one_by_one() -> None:
    assert len(lines(evidence(2))) >= 2 * len(FACTS)


def test_every_answer_is_there_when_commands_are_wanted() -> None:
    assert sum("ms" in line for line in lines(evidence(8), commands=True)) == 8
