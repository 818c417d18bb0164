"""JSON that others wrote."""

from __future__ import annotations

import pytest

from vsphere_ml.core import json_text
from vsphere_ml.core.hosts import saved_state
from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.guest.steps.network import rdma

NESTED = "[" * 100_000


@pytest.mark.parametrize("text", ["", "{", NESTED, '{"a":' * 100_000, b"\xff"])
def test_what_cannot_be_read_is_one_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        json_text.parse(text)


@pytest.mark.parametrize("text", ["", "7", "[]", "[[]]", "{}", '[{"addr_info": 7}]', NESTED])
def test_no_answer_of_a_guest_or_host_is_more_than_no_state(text: str) -> None:
    assert rdma.link(CommandAnswer(0, text, "")) == rdma.RdmaLink()
    assert saved_state.parse(text) is None
