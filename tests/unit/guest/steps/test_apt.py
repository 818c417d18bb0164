"""apt's lists may be locked by a guest that updates itself after its first boot: only that is waited for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.unit.guest.cluster import NODE_1
from tests.unit.guest.recorder import Recorder
from vsphere_ml.core.errors import GuestError
from vsphere_ml.guest.steps.system.packages import Packages

if TYPE_CHECKING:
    from vsphere_ml.core.model.guest import CommandAnswer
    from vsphere_ml.core.secret import Secret

LOCKED = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 812 (apt-get)"


@dataclass(slots=True)
class Updating(Recorder):
    """Its `apt-get update` fails so many times with these words."""

    fails: int = 0
    words: str = LOCKED

    def run(
        self, command: str, *, stdin: Secret | str | None = None, timeout_s: float = 1800.0, as_root: bool = True
    ) -> CommandAnswer:
        answer = Recorder.run(self, command, stdin=stdin, timeout_s=timeout_s, as_root=as_root)
        if command.endswith("update") and self.fails:
            self.fails -= 1
            raise GuestError("it ended with status 100", code="guest.command-failed", details=(self.words,))
        return answer


def test_a_guest_that_updates_itself_is_waited_for() -> None:
    shell = Updating(fails=2)
    Packages(names=("curl",)).apply(shell, NODE_1)
    *before, last = shell.told
    assert before == ["apt-get update", "sleep 10", "apt-get update", "sleep 10", "apt-get update"]
    assert last.endswith("install curl")


@pytest.mark.parametrize(("words", "updates"), [(LOCKED, 31), ("E: The repository is not signed.", 1)])
def test_what_does_not_pass_is_told(words: str, updates: int) -> None:
    shell = Updating(fails=1000, words=words)
    with pytest.raises(GuestError) as raised:
        Packages(names=("curl",)).apply(shell, NODE_1)
    assert raised.value.details == (words,)
    assert shell.told.count("apt-get update") == updates
