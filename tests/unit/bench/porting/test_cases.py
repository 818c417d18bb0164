"""Ported scripts with one thing swapped: the step it is about is told, with its line, and no other step changes."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from vsphere_ml.bench.porting.check import NEWEST_KERAS, check
from vsphere_ml.bench.porting.steps import STEPS, PortingState

FOLDER = Path(__file__).parents[3] / "cases" / "port"
CASES: list[dict[str, Any]] = tomllib.loads((FOLDER / "cases.toml").read_text())["case"]
OK = (PortingState.FOUND, PortingState.NOT_NEEDED)


def base(name: str) -> str:
    return (FOLDER / f"{name}.txt").read_text()


def swapped(case: dict[str, Any]) -> str:
    text = base(case["from"])
    for old, new in case["swap"]:
        assert old in text, f"{old!r} is not in {case['from']}"
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("name", ["loop", "fit", "torch"])
def test_a_ported_script_is_whole(name: str) -> None:
    ported = check(base(name).encode(), name)
    assert ported.is_complete
    assert [each.state for each in ported.found] == [PortingState.FOUND] * 7
    assert [each.step for each in ported.found] == list(STEPS)


def test_a_script_for_one_node_lacks_every_step_and_is_told_where() -> None:
    ported = check(base("plain").encode(), "plain")
    assert [(each.state, each.line) for each in ported.found] == [
        (PortingState.MISSING, None),
        (PortingState.MISSING, None),
        (PortingState.MISSING, 6),
        (PortingState.MISSING, 4),
        (PortingState.MISSING, 6),
        (PortingState.MISSING, 7),
        (PortingState.MISSING, 7),
    ]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_what_a_script_does_about_a_step_is_told_with_its_line(case: dict[str, Any]) -> None:
    text = swapped(case)
    ported = check(text.encode(), "train.py", keras=case.get("keras", NEWEST_KERAS))
    found = ported.found[case["step"] - 1]
    assert (found.state, found.message) == (case["state"], found.message)
    assert case.get("summary", "") in found.message
    if "at" in case:
        assert found.line is not None
        assert case["at"] in text.splitlines()[found.line - 1]
    else:
        assert found.line is None
    others = [each for each in ported.found if each.step.number not in (case["step"], *case.get("also", []))]
    assert [(each.step.number, each.message) for each in others if each.state not in OK] == []


def test_the_workload_that_ships_passes_its_own_check() -> None:
    workload = Path(__file__).parents[4] / "vsphere_ml" / "bench" / "workloads" / "tensorflow_horovod.py"
    assert check(workload.read_bytes(), "train.py").is_complete
