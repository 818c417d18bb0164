"""Every read, and the way of a cluster up and down, with one broken answer at each call in turn.

A read is mended and comes to the same; a change that breaks is told as that, and the next run finishes.
All that goes wrong in a test's share of the positions is listed in its one failure.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.faults.calls import (
    CHANGES,
    LATE,
    READS,
    SHORT_TIMEOUT_S,
    SIGN_IN,
    TIMEOUT_S,
    TROUBLES,
    answer,
    codes,
    destroyed,
    each_position,
    provisioned,
    removed,
    result,
)

if TYPE_CHECKING:
    from tests.integration.proxy import Proxy

pytestmark = [pytest.mark.lab, pytest.mark.faults]
ALL = TROUBLES | LATE
AS_MUCH = frozenset({"vcenter.interrupted", "provision.incomplete", "destroy.incomplete"})


def timeout_s(trouble: str) -> float:
    return SHORT_TIMEOUT_S if trouble in LATE else TIMEOUT_S


def allowed(place: str, trouble: str) -> frozenset[str]:
    """Return with which codes a run may end whose call got into trouble."""
    call = place.split()[1]
    if trouble in LATE and call in SIGN_IN:
        return frozenset({"vcenter.timeout"})
    return AS_MUCH if call in CHANGES else frozenset()


@pytest.mark.parametrize("part", range(2))
@pytest.mark.parametrize("trouble", ALL)
@pytest.mark.parametrize("name", READS)
def test_a_read_is_mended_at_every_call(between: Proxy, name: str, trouble: str, part: int) -> None:
    good, wrong = answer(between, READS[name]), dict[str, Any]()
    run = partial(result, partial(answer, between, READS[name], timeout_s(trouble)))
    for place, seen in each_position(between, ALL[trouble], run, part, 2):
        if seen != good and seen not in [*allowed(place, trouble)]:
            wrong[place] = seen if isinstance(seen, str) else "another answer"
    assert wrong == {}


@pytest.mark.parametrize("part", range(8))
@pytest.mark.parametrize("trouble", ALL)
def test_a_provision_is_mended_at_every_call_or_finished_by_the_next(between: Proxy, trouble: str, part: int) -> None:
    wrong = {}
    run = partial(codes, partial(provisioned, between, timeout_s(trouble)))
    for place, seen in each_position(between, ALL[trouble], run, part, 8):
        if not seen <= allowed(place, trouble):
            wrong[place] = seen
        if seen:
            assert codes(partial(provisioned, between)) == set(), place
        removed(between)
    assert wrong == {}


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("trouble", ALL)
def test_a_destroy_is_mended_at_every_call_or_finished_by_the_next(between: Proxy, trouble: str, part: int) -> None:
    wrong = {}

    def run() -> set[str]:
        with between.unbroken():
            assert codes(partial(provisioned, between)) == set()
        return codes(partial(destroyed, between, timeout_s(trouble)))

    for place, seen in each_position(between, ALL[trouble], run, part, 4):
        if not seen <= allowed(place, trouble):
            wrong[place] = seen
        if seen:
            removed(between)
    assert wrong == {}
