"""A provision and a destroy with one rewritten value: an error of its own, and the next run finishes.

Each kind of call has its turn with a few of the edits. Which these are, and which of its answer's values is rewritten,
goes round with VSML_FAULTS_OFFSET; VSML_FAULTS_EACH=1 tries every kind with every edit.
"""

from __future__ import annotations

import traceback
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.faults.calls import codes, count_kinds, destroyed, forget_attributes, provisioned, removed
from tests.faults.rewriting import EDITS, edit_one, whose_turn
from tests.integration import proxy

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

    from tests.integration.proxy import Proxy
    from vsphere_ml.flows.cluster.report import Report

pytestmark = [pytest.mark.lab, pytest.mark.faults]


@pytest.fixture(scope="module")
def provisioning(between: Proxy) -> Counter[str]:
    forget_attributes(between)
    counts = count_kinds(between, partial(provisioned, between))
    removed(between)
    return counts


@pytest.fixture(scope="module")
def destroying(between: Proxy) -> Counter[str]:
    provisioned(between)
    return count_kinds(between, partial(destroyed, between))


def bug_of(run: Callable[[], Report]) -> str:
    """Return the end of the traceback of a run that ends in one; nothing when it ends in an error of vsml's."""
    try:
        codes(run)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a bug
        return "".join(traceback.format_exception(error)[-2:])
    return ""


@pytest.mark.parametrize("edit", EDITS)
def test_a_provision_ends_in_an_error_of_its_own_and_the_next_finishes(
    between: Proxy, provisioning: Counter[str], edit: str
) -> None:
    wrong = {}
    for kind in whose_turn(provisioning, edit):
        forget_attributes(between)
        with between.breaking(kind, proxy.edited(partial(edit_one, edit))):
            bug = bug_of(partial(provisioned, between))
        if bug:
            wrong[kind] = bug
        assert codes(partial(provisioned, between)) == set(), kind
        removed(between)
    assert not wrong, "\n".join(f"{kind}: {bug}" for kind, bug in wrong.items())


@pytest.mark.parametrize("edit", EDITS)
def test_a_destroy_ends_in_an_error_of_its_own_and_the_next_finishes(
    between: Proxy, destroying: Counter[str], edit: str
) -> None:
    wrong = {}
    for kind in whose_turn(destroying, edit):
        assert codes(partial(provisioned, between)) == set(), kind
        with between.breaking(kind, proxy.edited(partial(edit_one, edit))):
            bug = bug_of(partial(destroyed, between))
        if bug:
            wrong[kind] = bug
        removed(between)
    assert not wrong, "\n".join(f"{kind}: {bug}" for kind, bug in wrong.items())
