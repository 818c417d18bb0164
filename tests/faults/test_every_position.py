"""Every read, and the way of a cluster up and down, with one broken answer at each call in turn.

A read is repeated and comes to the same; a change that breaks is reported as that, and the next run finishes.
All that goes wrong in a test's share of the positions is listed in its one failure.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.faults.calls import (
    ALL,
    CHANGES,
    LATE,
    READS,
    SIGN_IN,
    Position,
    answer,
    codes,
    count_kinds,
    destroyed,
    each_position,
    forget_attributes,
    positions,
    provisioned,
    removed,
    result,
)

if TYPE_CHECKING:
    from collections import Counter

    from tests.integration.proxy import Proxy

pytestmark = [pytest.mark.lab, pytest.mark.faults]
PARTS = 6  # of a provision's and of a destroy's positions
AS_MUCH = frozenset({"vcenter.interrupted", "provision.incomplete", "destroy.incomplete"})


def allowed(place: Position, fault: str) -> frozenset[str]:
    """Return with which codes a run may end whose call got into trouble."""
    if fault in LATE and place.method in SIGN_IN:
        return frozenset({"vcenter.timeout"})
    return AS_MUCH if place.method in CHANGES else frozenset()


@pytest.fixture(scope="session")
def reading(between: Proxy) -> dict[str, Counter[str]]:
    """How often each read makes calls of each kind."""
    return {name: count_kinds(between, partial(answer, between, read)) for name, read in READS.items()}


@pytest.fixture(scope="session")
def provisioning(between: Proxy) -> Counter[str]:
    forget_attributes(between)
    counts = count_kinds(between, partial(provisioned, between))
    removed(between)
    return counts


@pytest.fixture(scope="session")
def destroying(between: Proxy) -> Counter[str]:
    provisioned(between)
    return count_kinds(between, partial(destroyed, between))


@pytest.mark.parametrize("trouble", ALL)
@pytest.mark.parametrize("name", READS)
def test_a_read_is_mended_at_every_call(
    between: Proxy, reading: dict[str, Counter[str]], name: str, trouble: str
) -> None:
    good, wrong = answer(between, READS[name]), dict[Position, Any]()
    run = partial(result, partial(answer, between, READS[name]))
    known = {kind for each in [*READS][: [*READS].index(name)] for kind in reading[each]}
    for place, seen in each_position(between, trouble, run, positions(reading[name], trouble, known)):
        if seen != good and seen not in [*allowed(place, trouble)]:
            wrong[place] = seen if isinstance(seen, str) else "another answer"
    assert wrong == {}


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("trouble", ALL)
def test_a_provision_is_mended_at_every_call_or_finished_by_the_next(
    between: Proxy, provisioning: Counter[str], trouble: str, part: int
) -> None:
    wrong = {}

    def run() -> set[str]:
        with between.unbroken():
            forget_attributes(between)
        return codes(partial(provisioned, between))

    for place, seen in each_position(between, trouble, run, positions(provisioning, trouble)[part::PARTS]):
        if not seen <= allowed(place, trouble):
            wrong[place] = seen
        if seen:
            assert codes(partial(provisioned, between)) == set(), place
        removed(between)
    assert wrong == {}


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("trouble", ALL)
def test_a_destroy_is_mended_at_every_call_or_finished_by_the_next(
    between: Proxy, destroying: Counter[str], trouble: str, part: int
) -> None:
    wrong = {}

    def run() -> set[str]:
        with between.unbroken():
            assert codes(partial(provisioned, between)) == set()
        return codes(partial(destroyed, between))

    for place, seen in each_position(between, trouble, run, positions(destroying, trouble)[part::PARTS]):
        if not seen <= allowed(place, trouble):
            wrong[place] = seen
        if seen:
            removed(between)
    assert wrong == {}
