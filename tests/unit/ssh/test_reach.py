"""Waiting for guests, on a clock that moves only when somebody sleeps."""

from __future__ import annotations

import threading
from pathlib import Path

from tests.fakes.clock import FakeClock
from vsphere_ml.core.errors import GuestError
from vsphere_ml.ssh.keys.known_hosts import KnownHosts
from vsphere_ml.ssh.reach import wait_for
from vsphere_ml.ssh.session.target import SshTarget


def target(name: str) -> SshTarget:
    return SshTarget(name=name, host=f"{name}.lab", known_hosts=KnownHosts(Path("/nowhere")))


class Booting:
    """Guests that answer at the n-th try; each try before tells the next of its errors."""

    def __init__(self, **errors: list[str]) -> None:
        self._errors = errors
        self._alone = threading.Lock()

    def __call__(self, at: SshTarget) -> None:
        with self._alone:
            left = self._errors[at.name]
            code = left.pop(0) if len(left) > 1 else left[0]
        if code != "up":
            raise GuestError(f"{at.name} says {code}", code=code, target=at.name)


def test_all_have_answered() -> None:
    booting = Booting(a=["guest.unreachable", "guest.sign-in", "guest.host-key-changed", "up"], b=["up"])
    assert wait_for([target("a"), target("b")], 60, FakeClock(), attempt=booting) == {}


def test_the_last_thing_seen_of_each_that_did_not_answer_is_told() -> None:
    booting = Booting(a=["guest.unreachable", "guest.host-key-changed"], b=["up"], c=["guest.timeout"])
    errors = wait_for([target(name) for name in "abc"], 60, FakeClock(), attempt=booting)
    assert {name: error.code for name, error in errors.items()} == {
        "a": "guest.host-key-changed",
        "c": "guest.timeout",
    }


def test_a_deadline_that_has_passed_allows_one_try() -> None:
    clock = FakeClock()
    assert wait_for([target("a")], 0, clock, attempt=Booting(a=["up"])) == {}
    assert list(wait_for([target("a")], 0, clock, attempt=Booting(a=["guest.timeout", "up"]))) == ["a"]
    assert clock.seconds == 0


def test_nobody_to_wait_for() -> None:
    assert wait_for([], 60, FakeClock()) == {}
