"""The command that adds launches to a record."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.unit.bench import synthetic
from vsphere_ml.bench.records import again

if TYPE_CHECKING:
    from pathlib import Path

    from tests.golden import Golden
    from vsphere_ml.bench.model.record import Run


def made_by(line: str) -> tuple[Run, ...]:
    run = synthetic.sweep(2)
    return (replace(run, environment=replace(run.environment, invocation=tuple(shlex.split(line)))),)


@pytest.mark.parametrize(
    "line",
    [
        "vsml bench 'my cluster.toml' --nodes 1,2",
        "vsml bench --repeats 2 'my cluster.toml' --results first --nodes 1,2",
        "vsml bench 'my cluster.toml' --results=first --nodes 1,2 --repeats=2",
    ],
)
def test_options_that_are_given_anew_are_given_once(line: str, tmp_path: Path, golden: Golden) -> None:
    text = again.command(made_by(line), tmp_path, 7)
    golden(text)


def test_what_was_imported_or_is_one_document_cannot_be_added_to(tmp_path: Path) -> None:
    assert again.command((synthetic.sweep(2),), tmp_path, 7) == ""
    document = tmp_path / "a.json"
    document.touch()
    assert again.command(made_by("vsml bench"), document, 7) == ""
