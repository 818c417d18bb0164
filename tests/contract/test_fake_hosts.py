"""The contract, kept by the hosts in memory."""

from __future__ import annotations

import pytest

from tests.contract.hosts_contract import HostsContract, HostsRig
from tests.fakes.esx import esx
from tests.fakes.hosts import FakeHosts
from tests.fakes.pictures import seed_7u2
from tests.fakes.requirements import seed_cluster
from tests.fakes.site import FakeVCenter
from tests.unit.flows.acting import provision


@pytest.fixture
def hosts() -> HostsRig:
    site = FakeVCenter(seed_7u2())
    assert provision(seed_cluster(2), site).done
    (host,) = site.inventory.hosts
    made = FakeHosts(site, {host.ref: esx(host, ssh=False)})
    return HostsRig(made, made, host.ref, host.name)


class TestFakeHosts(HostsContract):
    pass
