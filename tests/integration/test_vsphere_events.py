"""What a run notes in vCenter's own events: who changes which cluster; and nothing where the account may not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyVmomi import vim

from tests.integration import labs, proxy
from vsphere_ml.config.load import load_text
from vsphere_ml.core.ports.vcenter import Scope

if TYPE_CHECKING:
    from vsphere_ml.lab.state import Lab

pytestmark = pytest.mark.lab
NAME = "noted"
FILE = labs.cluster_file(NAME, cluster="gpu", gpu='{ profile = "A100-40C" }', nodes=1)


def logged(lab: Lab) -> list[str]:
    """Return the lines of vCenter's clients."""
    session = labs.sign_in(lab)
    try:
        events = session.content.eventManager.QueryEvents(vim.event.EventFilterSpec(eventTypeId=["GeneralUserEvent"]))
        return [each.message for each in events]
    finally:
        session.close()


def test_a_run_that_changes_something_is_noted_and_one_that_does_not_is_not(lab: Lab) -> None:
    vcenter = labs.gateway(lab)
    for _ in range(2):
        assert labs.brought(load_text(FILE), lab, vcenter).done
    vcenter.close()
    assert [NAME in each for each in logged(lab) if NAME in each] == [True]


@pytest.mark.parametrize(
    "trouble", [proxy.fault("NoPermission"), proxy.fault("NotSupported")], ids=["no permission", "none"]
)
def test_what_may_not_be_noted_ends_nothing(lab: Lab, trouble: proxy.Trouble) -> None:
    with proxy.before(lab) as between:
        vcenter = between.gateway()
        vcenter.read_site(Scope())
        with between.breaking("LogUserEvent", trouble) as rule:
            vcenter.log_event("is lost")
        vcenter.close()
    assert rule.done == 1
    assert "is lost" not in logged(lab)
