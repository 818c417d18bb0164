"""Each fuzzer tries a fixed number of inputs here; `make fuzz` tries as many as one likes."""

from __future__ import annotations

from importlib import import_module

import pytest

from tests.fuzz import TARGETS
from tests.fuzz.mutation import inputs

MOST = {"clusters": 150, "playbooks": 100, "vhpc": 300, "topologies": 100, "guests": 300}
SEED = 20261122


def test_every_target_is_tried() -> None:
    assert set(TARGETS) == {*MOST, "importers"}  # that one has a test of its own beside the importers


@pytest.mark.parametrize("name", MOST)
def test_no_input_is_a_bug(name: str) -> None:
    assert import_module(f"tests.fuzz.{name}").run(0.0, SEED, MOST[name]) >= MOST[name] > 0


def test_the_same_seed_gives_the_same_inputs() -> None:
    samples = (b"a = 1\n[b]\nc = 'x'\n", b"[d]\n")
    assert list(inputs(samples, 0.0, 7, 200)) == list(inputs(samples, 0.0, 7, 200))
    assert len(set(inputs(samples, 0.0, 7, 200)) - set(samples)) > 150
