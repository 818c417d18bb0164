"""A guest that answers and breaks off again, as a slow one does while it boots, is tried again; not for ever."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.fakes.guest import FakeGuest
from tests.fakes.guests import FakeGuests
from vsphere_ml.core.errors import GuestError
from vsphere_ml.core.ports.vcenter import GuestPlace
from vsphere_ml.flows.guests.visit import run_with_retry

if TYPE_CHECKING:
    from vsphere_ml.core.model.guest import Shell


def worked(breaks: int, deadline_s: float = 60.0) -> tuple[object, int]:
    """Return what the work came to in a guest that breaks off so many times, and how often it was tried."""
    tries: Counter[str] = Counter()

    def work(shell: Shell) -> str:
        tries[shell.name] += 1
        if tries[shell.name] <= breaks:
            raise GuestError("transport shut down", code="guest.unreachable", target=shell.name)
        return "done"

    guests = FakeGuests({"node-1": FakeGuest("node-1")})
    place = GuestPlace(name="node-1", address="192.0.2.1", vm="vm-1")
    return run_with_retry(guests, [place], work, deadline_s)["node-1"], tries["node-1"]


@pytest.mark.parametrize("breaks", [0, 1, 2])
def test_a_guest_that_breaks_off_is_tried_again(breaks: int) -> None:
    assert worked(breaks) == ("done", breaks + 1)


def test_one_that_always_breaks_off_is_given_up_after_the_third_time() -> None:
    outcome, tries = worked(99)
    assert isinstance(outcome, GuestError)
    assert tries == 3


def test_nobody_is_tried_again_when_nobody_waits() -> None:
    outcome, tries = worked(1, deadline_s=0)
    assert isinstance(outcome, GuestError)
    assert tries == 1
