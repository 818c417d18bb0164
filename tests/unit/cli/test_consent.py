from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

import pytest

from vsphere_ml.cli import consent
from vsphere_ml.cli.views.cluster import plan as view
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.plan.changes import PowerOn
from vsphere_ml.core.plan.plan import Plan, Stage

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.golden import Golden
    from tests.unit.cli.conftest import Shown

END_OF_INPUT = "\x04"
PLAN = Plan(stages=(Stage(title="power on", changes=(PowerOn(vm="node-1"),)),))


def test_without_a_terminal_a_yes_is_needed_on_the_command_line(
    shown: Callable[..., Shown], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    made = shown()
    with pytest.raises(ConfigError) as refusal:
        consent.approval(made.terminal, view.text, yes=False)(PLAN)
    assert refusal.value.code == "confirm.needed"
    assert "node-1: power on" in made.err.getvalue(), "the plan is shown also when it is refused"
    assert not consent.is_confirmed(made.terminal, yes=False)
    assert consent.is_confirmed(made.terminal, yes=True)


def test_on_a_terminal_it_can_be_asked(shown: Callable[..., Shown], person: Callable[[str], None]) -> None:
    person("")
    assert consent.is_confirmed(shown().terminal, yes=False)


@pytest.mark.parametrize("answer", ["y\n", "Y\n", "yes\n", " YES \n"])
def test_yes_goes_on_after_the_plan_was_shown(
    answer: str, shown: Callable[..., Shown], person: Callable[[str], None]
) -> None:
    person(answer)
    made = shown()
    assert consent.approval(made.terminal, view.text, yes=False)(PLAN)
    text = made.err.getvalue()
    assert text.index("node-1: power on") < text.index("Continue? [y/N]")
    assert made.out.getvalue() == ""


@pytest.mark.parametrize("answer", ["\n", "n\n", "yess\n", "ja\n", END_OF_INPUT])
def test_anything_else_changes_nothing(answer: str, shown: Callable[..., Shown], person: Callable[[str], None]) -> None:
    person(answer)
    with pytest.raises(consent.Declined) as refusal:
        consent.approval(shown().terminal, view.text, yes=False)(PLAN)
    assert refusal.value.status == 130


def test_a_plan_that_came_out_different_is_shown_as_such(shown: Callable[..., Shown], golden: Golden) -> None:
    made = shown()
    approve = consent.approval(made.terminal, view.text, yes=True)
    assert approve(PLAN)
    golden(made.err.getvalue())
    assert approve(PLAN)
    golden(made.err.getvalue())


def test_yes_on_the_command_line_shows_the_plan_and_asks_nothing(shown: Callable[..., Shown]) -> None:
    made = shown()
    assert consent.approval(made.terminal, view.text, yes=True)(PLAN)
    assert "node-1: power on" in made.err.getvalue()
    assert "Continue?" not in made.err.getvalue()


def names(_plan: Plan) -> tuple[str, ...]:
    return "node-05", "node-06"


@pytest.mark.parametrize("answer", ["node-05 node-06\n", "node-06, node-05\n"])
def test_names_of_what_is_deleted_are_typed(
    answer: str, shown: Callable[..., Shown], person: Callable[[str], None]
) -> None:
    person(answer)
    assert consent.approval(shown().terminal, view.text, yes=False, names=names)(PLAN)


@pytest.mark.parametrize("answer", ["y\n", "node-05\n", "node-05 node-06 node-07\n", "\n", END_OF_INPUT])
def test_nothing_is_deleted_by_another_answer_than_its_names(
    answer: str, shown: Callable[..., Shown], person: Callable[[str], None]
) -> None:
    person(answer)
    with pytest.raises(consent.Declined):
        consent.approval(shown().terminal, view.text, yes=False, names=names)(PLAN)
