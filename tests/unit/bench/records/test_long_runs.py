"""Whatever is written of a long launch can be read again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.unit.bench import synthetic
from vsphere_ml.bench.records import long_runs, store
from vsphere_ml.core import json_memory
from vsphere_ml.core.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from vsphere_ml.bench.model.record import Run

TIMES = tuple((at + 1) / 3e5 for at in range(10))  # with as many digits as a float has


def long(*, ranks: int = 2) -> Run:
    run = next(each for each in synthetic.record(nodes=2, launches=1) if each.steps is not None)
    assert run.steps is not None
    asked = replace(run.configuration, ranks=ranks)
    steps = replace(run.steps, step_s=(TIMES,) * ranks, compute_s=(TIMES,) * ranks)
    return replace(run, configuration=asked, placement=(), steps=steps)


def test_steps_that_are_too_many_for_a_document_are_written_as_means(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_runs, "MOST_TIMES", 16)
    store.write(long(), tmp_path)
    (seen,) = store.read(tmp_path)
    assert seen.steps is not None
    settings = (sum(TIMES[:3]) / 3, sum(TIMES[3:6]) / 3, sum(TIMES[6:9]) / 3, TIMES[9])
    rows = (*seen.steps.step_s, *seen.steps.compute_s)
    assert [row == pytest.approx(settings) for row in rows] == [True] * 4
    assert seen.steps.averaged
    assert [each.code for each in seen.diagnostics][-1] == "record.steps-averaged"


def test_steps_that_fit_are_written_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_runs, "MOST_TIMES", 40)
    store.write(long(), tmp_path)
    assert store.read(tmp_path) == (long(),)


def test_as_many_times_as_are_kept_can_be_read_again() -> None:
    few, many = long(ranks=2), long(ranks=1002)
    added = 1000 * 2 * len(TIMES)
    grown = [len(store.text(many)) - len(store.text(few))]
    grown += [json_memory.memory(store.text(many)) - json_memory.memory(store.text(few))]
    assert grown[0] / added * long_runs.MOST_TIMES < store.LARGEST
    assert grown[1] / added * long_runs.MOST_TIMES < json_memory.MOST


@pytest.mark.parametrize(("module", "bound"), [(store, "LARGEST"), (json_memory, "MOST")])
def test_what_could_not_be_read_again_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: object, bound: str
) -> None:
    monkeypatch.setattr(module, bound, 1000)
    with pytest.raises(ConfigError) as refused:
        store.write(long(), tmp_path)
    assert refused.value.code == "record.unwritable"
    assert not list(tmp_path.iterdir())
