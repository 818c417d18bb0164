"""What `vsml bench selftest` tells on its way. The lab is stood in for."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.unit.bench.test_selftest import slowed, swept
from vsphere_ml.bench.record import Run, Workload
from vsphere_ml.cli.app import run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest

    from vsphere_ml.bench.matrix import Wish
    from vsphere_ml.cli.terminal import Terminal


@dataclass
class Guests:
    """Four guests whose all-reduces come near the bound in the launch of this number."""

    terminal: Terminal
    near_in: int
    launched: list[Workload] = field(default_factory=list)

    def shape(self, _rate: str, *_nodes: str) -> None:
        """Nothing is joined by links."""

    def bench(self, wish: Wish, _folder: Path) -> tuple[Run, ...]:
        self.launched += wish.workloads
        if wish.workloads == (Workload.LINK,):
            return slowed()
        return swept(0.97 if wish.repeats >= self.near_in else 0.5)


def told(patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path, near_in: int) -> list[str]:
    @contextmanager
    def lab_cluster(_name: str, terminal: Terminal) -> Iterator[Guests]:
        yield Guests(terminal, near_in)

    patch.setattr("vsphere_ml.cli.lab_cluster.lab_cluster", lab_cluster)
    run(["bench", "selftest", "--rate", "100mbit", "--into", str(folder / "record"), "-o", "json"])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    messages: list[str] = document["messages"]
    return messages


def test_every_step_is_told_with_how_long_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = told(monkeypatch, capsys, tmp_path, near_in=1)
    assert [each[:4] for each in steps] == ["1/4 ", "2/4 ", "3/4 ", "4/4 "]
    assert all(re.search(r"about \d+ minutes?", each) for each in steps[:3])


def test_a_step_that_is_made_again_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = told(monkeypatch, capsys, tmp_path, near_in=3)
    assert [each[:4] for each in steps] == ["1/4 ", "2/4 ", "2/4 ", "2/4 ", "3/4 ", "4/4 "]
    assert "near the bound" in steps[2]
