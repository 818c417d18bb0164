"""The contract, kept by the gateway against the lab vCenter over TLS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyVmomi import vim

from tests.contract.vcenter_contract import Connect, Rig, VCenterContract, rig
from tests.integration import labs
from vsphere_ml.core.plan.changes import MoveToPool, PowerOn
from vsphere_ml.vsphere.gateway import Gateway
from vsphere_ml.vsphere.inventory.collect import managed_object

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from vsphere_ml.lab.state import Lab

__all__ = ["rig"]
pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with labs.running(tmp_path_factory.mktemp("state")) as started:
        yield started


def _unlimited() -> Any:
    shares = vim.SharesInfo(level="normal", shares=0)
    share: Any = vim.ResourceAllocationInfo
    every = share(reservation=0, limit=-1, expandableReservation=True, shares=shares)
    made: Any = vim.ResourceConfigSpec
    return made(cpuAllocation=every, memoryAllocation=every)


@pytest.fixture
def connect(lab: Lab, tmp_path: Path) -> Connect:
    return lambda: Gateway(labs.sign_in(lab), tmp_path)


class TestGatewayOnTheLab(VCenterContract):
    def test_a_vm_moves_to_another_pool_while_it_runs(self, rig: Rig, lab: Lab) -> None:
        root = rig.read_site().clusters[0].root_pool
        session = labs.sign_in(lab)
        made = managed_object(session, "vim.ResourcePool", root).CreateResourcePool(name=rig.cluster, spec=_unlimited())
        rig.equip("n-1", rig.nic())
        rig.do(PowerOn(vm="n-1"))
        ml = next(ref for ref, path in rig.read_site().clusters[0].pools.items() if path.endswith(rig.cluster))
        rig.do(MoveToPool(vm="n-1", pool=ml, pool_name=rig.cluster, was="Resources"))
        assert (rig.vm("n-1").pool, rig.vm("n-1").powered_on) == (ml, True)
        rig.sweep()
        made.Destroy_Task()
        session.close()

    def test_a_clone_that_an_earlier_run_began_is_taken_up(self, rig: Rig, connect: Connect) -> None:
        wanted = rig.clone("n-1")
        earlier = Rig(connect(), rig.cluster)
        earlier.read_site()
        earlier.do(wanted)
        begun = earlier.vm("n-1")
        rig.do(wanted)
        assert rig.vm("n-1") == begun
        earlier.vcenter.close()

    def test_a_clone_of_somebody_else_or_on_another_host_is_not_taken_up(self, rig: Rig, connect: Connect) -> None:
        wanted, elsewhere = rig.clone("n-1"), rig.clone("n-2")
        other = Rig(connect(), f"{rig.cluster}x")
        other.do(other.clone("n-1"))
        earlier = Rig(connect(), rig.cluster)
        earlier.do(earlier.clone("n-2", host=1))
        assert rig.refused(wanted) == "vsphere.duplicate-name"
        assert rig.refused(elsewhere) == "vsphere.duplicate-name"
        for each in (other, earlier):
            each.sweep()
            each.vcenter.close()
