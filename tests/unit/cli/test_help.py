"""What the help of commands shows, and what an unknown command is answered with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.cli import reference

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.cli.conftest import Ended

NAMES = reference.names()
GROUPS = ["", "lab", "export", "import", "rules", "bench", "bench baseline"]


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


@pytest.mark.parametrize("name", NAMES)
def test_a_flag_takes_no_value_and_global_options_are_one_line(name: str, vsml: Callable[..., Ended]) -> None:
    shown = vsml(*name.split(), "--help").out
    assert "--help" in shown
    assert "bool" not in shown
    assert "--tls-ca" not in shown
    assert sum("vsml --help" in line for line in shown.splitlines()) == 1


@pytest.mark.parametrize("group", GROUPS)
def test_a_flag_of_a_group_takes_no_value(group: str, vsml: Callable[..., Ended]) -> None:
    shown = vsml(*group.split(), "--help").out
    assert "--help" in shown
    assert "bool" not in shown


def test_the_help_of_vsml_lists_the_global_options_and_every_command(vsml: Callable[..., Ended]) -> None:
    shown = vsml("--help").out
    assert "--tls-ca" in shown
    first_words = {line.strip("│ ").partition(" ")[0] for line in shown.splitlines()}
    assert {name.split()[0] for name in NAMES} <= first_words
    panels = [line.partition("─ ")[2].partition(" ─")[0] for line in shown.splitlines() if line.startswith("╭")]
    assert panels == [
        "Options",
        "Global options",
        "Start",
        "Cluster",
        "Guests",
        "Site",
        "Benchmark",
        "Other tools",
        "Lab",
    ]


@pytest.mark.parametrize(
    ("typed", "ours"),
    [
        ("apply", "vsml provision"),
        ("help", "vsml --help"),
        ("help plan", "vsml plan --help"),
        ("version", "vsml --version"),
        ("list", "vsml status"),
        ("ps", "vsml status"),
        ("logs", "vsml run -- journalctl -n 50"),
    ],
)
def test_the_word_of_another_tool_is_answered_with_ours(typed: str, ours: str, vsml: Callable[..., Ended]) -> None:
    ended = vsml(*typed.split())
    assert ended.status == 2
    assert ended.err.splitlines()[0] == f"error: no such command '{typed.split(maxsplit=1)[0]}'. Did you mean '{ours}'?"


def test_each_word_of_another_tool_leads_to_a_command() -> None:
    from vsphere_ml.cli.commands import ELSEWHERE  # noqa: PLC0415

    commands = {name.split()[0] for name in NAMES}
    assert not set(ELSEWHERE) & commands
    assert all(ours.startswith("--") or ours.split()[0] in commands for ours in ELSEWHERE.values())
