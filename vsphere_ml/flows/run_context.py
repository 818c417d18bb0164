"""What a run works with from its beginning to its end, so that no step of it takes these one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.ports.events import Listener
    from vsphere_ml.core.ports.vcenter import Clock, VCenter


@dataclass(frozen=True, slots=True)
class RunContext:
    """The cluster file, the vCenter, the site's listener, and the clock."""

    spec: ClusterSpec
    vcenter: VCenter
    notify: Listener
    clock: Clock
