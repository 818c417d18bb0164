"""Every value of every answer, rewritten: a run ends in its result or in an error of its own, never in a bug.

A value is tried once, where it comes first: at a path in a method's answers, in its first object, each time it comes.
"""

from __future__ import annotations

import traceback
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.faults import calls
from tests.faults.calls import READS, codes, provisioned, removed, result
from tests.faults.replay import Recording
from tests.faults.rewriting import EDITS, editable, edited
from vsphere_ml.cli.wiring.site_wiring import SystemClock
from vsphere_ml.flows.cluster.plan import plan
from vsphere_ml.flows.run_context import RunContext
from vsphere_ml.vsphere.connection import endpoint
from vsphere_ml.vsphere.connection import session as session_module
from vsphere_ml.vsphere.connection.session import connect
from vsphere_ml.vsphere.connection.tls import Trust
from vsphere_ml.vsphere.gateway import Gateway

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.integration.proxy import Proxy
    from vsphere_ml.lab.state import Lab
    from vsphere_ml.vsphere.connection.tls import PinnedConnection

pytestmark = [pytest.mark.lab, pytest.mark.faults]
CARRIED = frozenset({"unknown word"})  # a newer vSphere has more of them, so an answer with one is still an answer


def plan_larger(session: Any) -> Any:
    return plan(RunContext(calls.LARGER, Gateway(session), lambda _: None, SystemClock())).plan


# A plan makes the most of what a look finds, so it comes first.
RUNS: dict[str, Callable[[Any], Any]] = {"plan of more": plan_larger, **READS}


@dataclass(frozen=True, slots=True)
class Recorded:
    """The answers of a run of each kind, made while the first of two nodes stood."""

    lab: Lab
    runs: dict[str, Recording]

    def read(self, name: str, connection: type[PinnedConnection]) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(endpoint, "PinnedConnection", connection)
            session = connect(self.lab.address, self.lab.username, self.lab.password(), Trust(insecure=True))
            try:
                return RUNS[name](session)
            finally:
                session.close()

    def places(self, edit: str) -> Iterator[tuple[str, str, str]]:
        """Yield run, method and path of what an edit changes, each where it comes first."""
        seen = set()
        for run, recording in self.runs.items():
            for method, body in recording.bodies():
                for path in editable(body, EDITS[edit]):
                    if (method, path) not in seen:
                        seen.add((method, path))
                        yield run, method, path


@pytest.fixture(scope="session")
def recorded(lab: Lab, between: Proxy) -> Recorded:
    assert codes(partial(provisioned, between)) == set()
    made = Recorded(lab, {name: Recording() for name in RUNS})
    for name, recording in made.runs.items():
        made.read(name, recording.recorder())
    removed(between)
    return made


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody answers a question that was not recorded: it is not waited for."""
    monkeypatch.setattr(session_module, "retry_pauses", lambda _: iter([None]))


@pytest.mark.parametrize("name", RUNS)
def test_what_is_given_again_comes_to_the_same(recorded: Recorded, name: str) -> None:
    player = recorded.runs[name].player()
    assert recorded.read(name, player) == recorded.read(name, recorded.runs[name].player())


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("edit", EDITS)
def test_no_value_read_is_a_bug_whatever_it_is(recorded: Recorded, edit: str, part: int) -> None:
    places = list(recorded.places(edit))[part::4]
    assert places
    wrong = {}
    for run, method, path in places:
        recording = replace(recorded.runs[run], rewrite=partial(rewrite, method, path, edit))
        try:
            seen = result(partial(recorded.read, run, recording.player()))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a bug
            wrong[run, path] = "".join(traceback.format_exception(error)[-2:])
        else:
            if edit in CARRIED and seen == "vcenter.unexpected-output":
                wrong[run, path] = seen
    assert not wrong, "\n".join(f"{run}, {path}: {what}" for (run, path), what in wrong.items())


def rewrite(method: str, path: str, edit: str, asked: str, body: bytes) -> bytes:
    return edited(body, path, EDITS[edit]) if asked == method else body
