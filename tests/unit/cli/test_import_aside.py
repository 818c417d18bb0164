"""Modules that are imported while a command waits."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from vsphere_ml.cli.import_aside import import_aside

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path / "needed_later_by_a_test.py"


def test_the_module_is_there_at_the_end(module: Path) -> None:
    module.write_text("")
    with import_aside(module.stem):
        pass
    assert sys.modules.pop(module.stem).__file__ == str(module)


def test_one_that_fails_is_left_to_who_needs_it(module: Path) -> None:
    module.write_text("1 / 0\n")
    with import_aside(module.stem):
        pass
    assert module.stem not in sys.modules
