"""A misspelt adapter is told from one that vsml does not know yet."""

from __future__ import annotations

import pytest

from vsphere_ml.core.catalog import adapters


@pytest.mark.parametrize(
    "model",
    ["ConnectX-6 Dx", "connectx-6 dx", "ConnectX6Dx", "ConnectX-6", "ConnectX-9", "ConnectX", "BlueField3", "E810"],
)
def test_what_may_exist_is_left(model: str) -> None:
    assert adapters.suggest_model(model) is None


@pytest.mark.parametrize("model", ["ConnectX6", "ConectX-6 Dx", "ConnectX-6 Dxx"])
def test_what_looks_like_a_slip_is_told_with_what_was_meant(model: str) -> None:
    assert (adapters.suggest_model(model) or "").startswith("`ConnectX-6 Dx`")
