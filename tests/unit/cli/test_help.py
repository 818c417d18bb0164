"""What the help of commands shows, and what an unknown command is answered with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.cli import reference
from vsphere_ml.cli.commands import WHERE_GLOBAL

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.golden import Golden
    from tests.unit.cli.conftest import Ended

NAMES = reference.names()
GROUPS = ["lab", "runtime", "export", "import", "rules", "bench", "bench baseline"]


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


@pytest.mark.parametrize("name", NAMES)
def test_a_flag_takes_no_value_and_global_options_are_one_line(name: str, vsml: Callable[..., Ended]) -> None:
    shown = vsml(*name.split(), "--help").out
    assert "--help" in shown
    assert "bool" not in shown
    assert "--tls-ca" not in shown
    assert sum(WHERE_GLOBAL.replace("`", "") in line for line in shown.splitlines()) == 1


@pytest.mark.parametrize("group", GROUPS)
def test_a_flag_of_a_group_takes_no_value(group: str, vsml: Callable[..., Ended]) -> None:
    shown = vsml(*group.split(), "--help").out
    assert "--help" in shown
    assert "bool" not in shown


def test_the_help_of_vsml_has_every_command_by_its_task_on_one_screen(vsml: Callable[..., Ended]) -> None:
    shown = vsml("--help").out
    assert len(shown.splitlines()) <= 24
    lines = shown.rstrip().splitlines()
    assert max(map(len, lines)) <= 80
    listed = {line[at : at + 12].strip() for line in lines[4:-3] for at in (13, 46)} - {""}
    assert listed == {name.split()[0] for name in NAMES}
    groups = [group for line in lines[4:-3] if (group := line[:13].strip())]
    assert groups == ["Start", "Cluster", "Guests", "Site", "Benchmark", "Other tools"]


@pytest.mark.parametrize("name", ["--help", "plan --help"])
def test_help_as_a_command_is_the_same_as_the_option(name: str, vsml: Callable[..., Ended]) -> None:
    *command, _ = name.split()
    asked, option = vsml("help", *command), vsml(*name.split())
    assert (asked.status, asked.out) == (0, option.out)


def test_the_global_options_have_a_help_of_their_own(vsml: Callable[..., Ended]) -> None:
    assert "--tls-ca" in vsml("help", "options").out


def test_version_and_apply_are_understood(vsml: Callable[..., Ended]) -> None:
    assert vsml("version").out == vsml("--version").out != ""
    assert vsml("apply", "--help").out == vsml("provision", "--help").out


@pytest.mark.parametrize(
    "typed",
    [
        "create",
        "ps",
        "logs",
    ],
)
def test_the_word_of_another_tool_is_answered_with_ours(typed: str, vsml: Callable[..., Ended], golden: Golden) -> None:
    ended = vsml(*typed.split())
    assert ended.status == 2
    golden(ended.err.splitlines()[0])


def test_each_word_of_another_tool_leads_to_a_command() -> None:
    from vsphere_ml.cli.commands import ELSEWHERE  # noqa: PLC0415

    commands = {name.split()[0] for name in NAMES}
    assert not set(ELSEWHERE) & commands
    assert all(ours.startswith("--") or ours.split()[0] in commands for ours in ELSEWHERE.values())
