"""Every command that reads, and steps of a provision, with one broken answer: a sample of the ring `faults`.

A read is repeated and comes to the same; a change that breaks is reported as that, and the next run finishes.
"""

from __future__ import annotations

from collections import Counter
from itertools import cycle
from typing import TYPE_CHECKING, Any

import pytest

from tests.faults.calls import READS, TROUBLES, answer, codes, finished, provisioned, removed
from tests.integration import proxy
from vsphere_ml.vsphere.changes import lock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.integration.proxy import Proxy, Trouble
    from vsphere_ml.lab.state import Lab

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def between(lab: Lab) -> Iterator[Proxy]:
    with proxy.before(lab) as made:
        yield made


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock that was made and never signed is waited for ten seconds otherwise."""
    monkeypatch.setattr(lock, "UNSIGNED_S", 1.0)


def calls_of(between: Proxy, run: Callable[[], Any]) -> list[str]:
    with between.listening() as calls:
        run()
        return list(calls)


@pytest.mark.parametrize(("name", "trouble"), list(zip(READS, cycle(TROUBLES.values()), strict=False)), ids=READS)
def test_each_read_is_mended_in_the_middle(between: Proxy, name: str, trouble: Trouble) -> None:
    good = answer(between, READS[name])
    middle = len(calls_of(between, lambda: answer(between, READS[name]))) // 2
    with between.breaking("*", trouble, nth=middle) as rule:
        assert answer(between, READS[name]) == good
        assert rule.done == 1


def test_a_read_is_mended_at_the_first_call_of_each_kind(between: Proxy) -> None:
    read = READS["everything of hosts"]
    good = answer(between, read)
    kinds = Counter(calls_of(between, lambda: answer(between, read)))
    for method, fault in zip(kinds, cycle(TROUBLES.values()), strict=False):
        with between.breaking(method, _fair(method, fault)) as rule:
            assert answer(between, read) == good, method
            assert rule.done == 1


def _fair(method: str, fault: Trouble) -> Trouble:
    # Who answers the first question with a page is no vCenter.
    return proxy.dropped if method == proxy.VERSIONS and fault is proxy.page else fault


WAITING = ("CreatePropertyCollector", "CreateFilter", "WaitForUpdatesEx")


@pytest.mark.parametrize(("nth", "method"), list(enumerate(WAITING, start=1)), ids=WAITING)
def test_tasks_stay_watched_whatever_breaks_in_waiting_for_them(between: Proxy, nth: int, method: str) -> None:
    """In a run of its own each: a busy lab answers a wait in more calls, and two that break in one are not repeated."""
    with between.breaking(method, list(TROUBLES.values())[nth - 1], nth) as rule:
        assert codes(lambda: provisioned(between)) == set()
        assert rule.done == 1
        assert between.calls.count("CloneVM_Task") == 1
    removed(between)


def test_tasks_stay_watched_when_an_answer_is_late(between: Proxy) -> None:
    with between.breaking("WaitForUpdatesEx", proxy.late) as rule:
        assert codes(lambda: provisioned(between, timeout_s=8)) == set()
        assert rule.done == 1
    removed(between)


@pytest.mark.parametrize(
    ("method", "nth", "trouble", "told"),
    [
        ("CreateFolder", 1, "dropped", set()),  # the lock, which is looked for and taken again
        ("CreateFolder", 2, "dropped", set()),  # the cluster's own, which is looked for and marked
        ("CreateFolder", 2, "lost", set()),
        ("CloneVM_Task", 1, "dropped", {"provision.incomplete"}),
        ("PowerOnVM_Task", 1, "503 afterwards", {"provision.incomplete"}),
    ],
)
def test_a_change_that_breaks_is_told_and_the_next_run_finishes(
    between: Proxy, method: str, nth: int, trouble: str, told: set[str]
) -> None:
    with between.breaking(method, TROUBLES[trouble], nth):
        assert codes(lambda: provisioned(between)) == told
    finished(between)
