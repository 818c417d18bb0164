"""Clones, equips and powers on VMs with pyVmomi alone, all tasks at once: a peer of `vsml provision`.

    python -m benchmarks.bare_provision NUMBER [WAVES]

A script of the kind that one writes for one site: it looks up its objects by name, plans nothing, asks nothing, reads
nothing back, and puts a VM on each host in turn. It powers the VMs on in so many waves (one), and prints the seconds
from the first clone's call to the last power-on's end. The connection comes from GOVC_*, as for govc.
"""

from __future__ import annotations

import os
import ssl
import sys
import time
from collections import defaultdict
from typing import Any
from urllib.parse import urlparse

from pyVim.connect import Disconnect, SmartConnect
from pyVmomi import vim, vmodl

TEMPLATE, DATASTORE, PROFILE = "ubuntu-22.04-gpu", "vsan", "grid_a100-40c"
MEMORY_MIB, CPUS = 64 * 1024, 8
EXTRA = {"pciPassthru.use64bitMMIO": "TRUE", "pciPassthru.64bitMMIOSizeGB": "128"}
_collector: Any = vmodl.query.PropertyCollector
_vm: Any = vim.vm


def main(number: int, waves: int = 1) -> None:
    address = urlparse(os.environ["GOVC_URL"])
    instance: Any = SmartConnect(
        host=address.hostname,
        port=address.port or 443,
        user=os.environ["GOVC_USERNAME"],
        pwd=os.environ["GOVC_PASSWORD"],
        sslContext=ssl.create_default_context(cafile=os.environ["GOVC_TLS_CA_CERTS"]),
    )
    content = instance.RetrieveContent()
    (datacenter,) = content.rootFolder.childEntity
    (compute,) = datacenter.hostFolder.childEntity
    template = content.searchIndex.FindChild(datacenter.vmFolder, TEMPLATE)
    (store,) = [each for each in compute.datastore if each.name == DATASTORE]
    hosts = sorted(compute.host, key=lambda host: host.name)
    begun = time.monotonic()
    clones = {}
    for at in range(number):
        place = _vm.RelocateSpec(host=hosts[at % len(hosts)], pool=compute.resourcePool, datastore=store)
        spec = _vm.CloneSpec(location=place, config=equipped(), powerOn=False, template=False)
        clones[template.Clone(folder=datacenter.vmFolder, name=f"bare-{at + 1:02}", spec=spec)] = at * waves // number
    start(content, clones)
    print(f"{time.monotonic() - begun:.2f}")
    Disconnect(instance)


def start(content: Any, clones: dict[Any, int]) -> None:
    """Power on what these tasks clone, by the number of its wave; those of the first as soon as each is there."""
    starts, later = [], defaultdict(list)
    for task, vm in ended(content, list(clones)):
        if clones[task]:
            later[clones[task]].append(vm)
        else:
            starts.append(vm.PowerOn())
    for wave in sorted(later):
        for _ in ended(content, starts):
            pass
        starts = [vm.PowerOn() for vm in later[wave]]
    for _ in ended(content, starts):
        pass


def equipped() -> Any:
    backing = _vm.device.VirtualPCIPassthrough.VmiopBackingInfo(vgpu=PROFILE)
    return _vm.ConfigSpec(
        numCPUs=CPUS,
        memoryMB=MEMORY_MIB,
        memoryAllocation=vim.ResourceAllocationInfo(reservation=MEMORY_MIB, limit=-1),
        memoryReservationLockedToMax=True,
        extraConfig=[vim.option.OptionValue(key=key, value=value) for key, value in EXTRA.items()],
        deviceChange=[
            _vm.device.VirtualDeviceSpec(
                operation="add", device=_vm.device.VirtualPCIPassthrough(key=-101, backing=backing)
            )
        ],
    )


def ended(content: Any, tasks: list[Any]) -> Any:
    """Yield each task with its result as soon as it ends. Raises its fault when it fails."""
    collector = content.propertyCollector
    objects = [_collector.ObjectSpec(obj=task) for task in tasks]
    properties = [_collector.PropertySpec(type=vim.Task, pathSet=["info.state", "info.error", "info.result"])]
    filters = collector.CreateFilter(_collector.FilterSpec(objectSet=objects, propSet=properties), True)
    seen: dict[Any, dict[str, Any]] = {task: {} for task in tasks}
    version = ""
    while seen:
        update = collector.WaitForUpdatesEx(version, None)
        version = update.version
        for each in (each for part in update.filterSet for each in part.objectSet if each.obj in seen):
            values = seen[each.obj]
            values.update({change.name: change.val for change in each.changeSet})
            if values.get("info.state") == "error":
                raise values["info.error"]
            if values.get("info.state") == "success":
                del seen[each.obj]
                yield each.obj, values.get("info.result")
    filters.Destroy()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
