"""Which of a VM's adapters are its fast ones, by what vCenter tells of their kind."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from vsphere_ml.core.model.inventory import EthernetCard
from vsphere_ml.flows.guests.guests import fast_macs


@pytest.mark.parametrize("adapter", ["sriov", "pvrdma"])
def test_the_mac_of_a_fast_nic_is_not_that_of_the_management_nic(adapter: str) -> None:
    management = EthernetCard(key=4000, adapter="vmxnet3", mac="00:50:56:01:02:03", network=None)
    fast = EthernetCard(key=4001, adapter=adapter, mac="00:50:56:01:02:04", network=None)
    vm: Any = SimpleNamespace(settings=SimpleNamespace(devices=(management, fast)))
    assert fast_macs(vm) == ("00:50:56:01:02:04",)
