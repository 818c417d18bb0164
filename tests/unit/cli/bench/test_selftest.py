"""What `vsml bench selftest` tells on its way. The lab is stood in for."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.bench.gate.test_selftest import slowed, swept
from vsphere_ml.bench.model.record import Run, Workload
from vsphere_ml.cli.app import run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from vsphere_ml.bench.launch.matrix import BenchSpec
    from vsphere_ml.cli.terminal import Terminal


@dataclass
class Guests:
    """Four guests whose all-reduces get this share of what the bound allows."""

    terminal: Terminal
    share: float
    requirements: list[BenchSpec] = field(default_factory=list)

    def shape(self, _rate: str, *_nodes: str) -> None:
        """Nothing is joined by links."""

    def bench(self, spec: BenchSpec, _folder: Path) -> tuple[Run, ...]:
        self.requirements.append(spec)
        return slowed() if spec.workloads == (Workload.LINK,) else swept(self.share)


@dataclass
class Tried:
    """What a selftest came to."""

    status: int
    messages: list[str]
    requirements: list[BenchSpec]


def tried(
    patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path, *more: str, share: float = 0.97
) -> Tried:
    specs: list[BenchSpec] = []

    @contextmanager
    def lab_cluster(_name: str, terminal: Terminal) -> Iterator[Guests]:
        yield Guests(terminal, share, specs)

    patch.setattr("vsphere_ml.cli.lab.lab_cluster.lab_cluster", lab_cluster)
    words = ("bench", "selftest", "--rate", "100mbit", "--results", str(folder / "record"), "-o", "json")
    status = run([*words, *more])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return Tried(status, document["messages"], specs)


def test_every_step_is_told_with_how_long_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = tried(monkeypatch, capsys, tmp_path).messages
    assert [each[:4] for each in steps] == ["1/4 ", "2/4 ", "3/4 ", "4/4 "]
    assert all(re.search(r"about \d+ minutes?", each) for each in steps[:3])


@pytest.mark.parametrize(("share", "status"), [(0.97, 0), (0.5, 6)])
def test_how_often_it_launches_does_not_depend_on_what_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], share: float, status: int
) -> None:
    for number, (more, launches) in enumerate([((), 2), (("--launches", "5"), 5)]):
        done = tried(monkeypatch, capsys, tmp_path / str(number), *more, share=share)
        assert done.status == status
        assert [(spec.workloads, spec.repeats) for spec in done.requirements] == [
            ((Workload.ALLREDUCE,), launches),
            ((Workload.LINK,), 1),
        ]
