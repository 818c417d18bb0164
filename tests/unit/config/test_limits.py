"""Sizes that no vSphere takes are refused in the file, at their line."""

from __future__ import annotations

import pytest

from tests.unit.config.texts import ONE_NODE
from vsphere_ml.config.load import load_text
from vsphere_ml.core.errors import ConfigError


@pytest.mark.parametrize("key", [f"mmio_gib = {2**50}", 'disk = "999999TiB"', 'disk = "63TiB"'])
def test_a_size_beyond_what_vsphere_takes_is_refused(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_text(f"{ONE_NODE}{key}\n")
    assert caught.value.code == "config.invalid"
    assert key.split(maxsplit=1)[0] in str(caught.value.details) + str(caught.value)


@pytest.mark.parametrize("key", ["mmio_gib = 32768", 'disk = "62TiB"'])
def test_the_largest_sizes_are_taken(key: str) -> None:
    assert load_text(f"{ONE_NODE}{key}\n").nodes
