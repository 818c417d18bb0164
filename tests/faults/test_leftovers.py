"""A test that is ended in its midst leaves nothing to those after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.faults.calls import SPEC, codes, provisioned, remove_leftovers
from vsphere_ml.core.ports.vcenter import Scope

if TYPE_CHECKING:
    from tests.integration.proxy import Proxy

pytestmark = [pytest.mark.lab, pytest.mark.faults]


def test_a_cluster_and_a_lock_that_were_left_are_removed(between: Proxy) -> None:
    assert codes(lambda: provisioned(between)) == set()
    gateway = between.gateway()
    try:
        before = {vm.name for vm in gateway.read_site(Scope()).vms}
        with gateway.hold(SPEC.name):
            remove_leftovers(between)
            site = gateway.read_site(Scope())
    finally:
        gateway.close()
    assert {vm.name for vm in site.vms} == before - {node.name for node in SPEC.nodes}
    assert [folder.path for folder in site.folders if folder.path] == []
