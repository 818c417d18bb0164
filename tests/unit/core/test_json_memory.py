"""What JSON takes in memory, estimated and measured."""

from __future__ import annotations

import json
import sys
import tracemalloc

import pytest

from vsphere_ml.core.json_memory import memory

COUNT = 20_000


@pytest.mark.parametrize(
    "values",
    [
        ["{}"] * COUNT,
        ["[]"] * COUNT,
        ["[1]"] * COUNT,
        ['{"a":1}'] * COUNT,
        ["1.5"] * COUNT,
        [str(1 << 62)] * COUNT,
        [f'"{each:x}"' for each in range(COUNT)],
        ['"\N{GRINNING FACE}"'] * COUNT,
        [f'{{"{each:x}":{each}}}' for each in range(COUNT)],
    ],
    ids=lambda values: values[0],
)
def test_values_take_no_more_than_estimated(values: list[str]) -> None:
    text = f"[{','.join(values)}]"
    tracemalloc.start()
    try:
        preserved = json.loads(text)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(preserved) == COUNT
    assert taken <= memory(text) - sys.getsizeof(text)
