"""What a lock's attribute may hold, which anybody with an account in vCenter can write."""

from __future__ import annotations

import json

import pytest

from vsphere_ml.vsphere.changes.lock import Holder, parse

HOLDER = Holder(user="ada", host="there", pid=7, where="", since="2026-11-21T12:00:00+00:00", beat="")


def changed(**fields: object) -> str:
    return json.dumps({**json.loads(HOLDER.text()), **fields})


def test_a_holder_is_read_as_it_was_written() -> None:
    assert parse(HOLDER.text()) == HOLDER


@pytest.mark.parametrize(
    "text",
    [
        *(None, "", "ada", "7", "[]", "{}", "[" * 100_000, changed(more=1)),
        *(changed(pid="7"), changed(pid=True), changed(beat=5), changed(user=["ada"]), changed(where=None)),
    ],
)
def test_what_is_no_holder_is_none(text: str | None) -> None:
    assert parse(text) is None
