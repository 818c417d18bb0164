"""The connection breaks while changes are under way: nobody is left to guess what vCenter goes on with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fakes.pictures import quad_8u3
from tests.fakes.requirements import cluster
from tests.fakes.site import FakeVCenter
from tests.unit.flows.acting import provision
from vsphere_ml.core.errors import VSphereError
from vsphere_ml.core.plan.changes import CloneVm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.golden import Golden
    from vsphere_ml.core.ports.vcenter import TaskHandle, Update


class Breaking(FakeVCenter):
    """A vCenter that is out of reach as soon as clones are waited for."""

    def wait(self, tasks: Sequence[TaskHandle], timeout_s: float) -> tuple[Update, ...]:
        if any(isinstance(task.change, CloneVm) for task in tasks):
            raise VSphereError("vc cannot be reached", code="vcenter.unreachable", target="vc")
        return super().wait(tasks, timeout_s)


def test_what_may_still_be_at_work_is_named(golden: Golden) -> None:
    site = Breaking(quad_8u3())
    with pytest.raises(VSphereError) as caught:
        provision(cluster(2), site)
    assert caught.value.code == "vcenter.unreachable"
    golden(caught.value)
