"""Labs whose VMs have guests, and what it takes to make VMs in them and to enter them."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyVim.task import WaitForTask
from pyVmomi import vim

from tests.integration import labs
from tests.integration.shells import open_shell
from tests.waiting import until
from vsphere_ml.cli.wiring.site_wiring import SystemClock
from vsphere_ml.core.errors import VSphereError
from vsphere_ml.core.model.spec import (
    Address,
    ClusterSpec,
    GpuRequest,
    GuestAccess,
    Location,
    NicRequest,
    NodeSpec,
    Source,
    VCenterSpec,
)
from vsphere_ml.core.nodes.firstboot import HOST_KEYS
from vsphere_ml.core.units import gib
from vsphere_ml.guest import firstboot
from vsphere_ml.lab import runtime, server
from vsphere_ml.lab.guests import hub, needs
from vsphere_ml.ssh.keys.host_keys import read_key
from vsphere_ml.ssh.keys.key_pairs import key_pair
from vsphere_ml.ssh.keys.known_hosts import KnownHosts
from vsphere_ml.ssh.session.target import SshTarget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from vsphere_ml.lab.state import Lab
    from vsphere_ml.ssh.session.shell import SshShell

REASON = needs.missing_need()
needed = pytest.mark.skipif(REASON is not None, reason=f"no lab guests: {REASON}")
# Of tests that run ranks in pods of the lab's Kubernetes.
in_pods = [
    pytest.mark.lab,
    pytest.mark.long,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(
        os.geteuid() != 0 or REASON is not None or runtime.missing_need() is not None,
        reason="pods need root, and what lab guests and their runtime need",
    ),
]

_CLUSTER = ClusterSpec(
    name="train",
    vcenter=VCenterSpec(),
    location=Location(),
    source=Source(template="ubuntu"),
    nodes=(),
    guest=GuestAccess(user="ubuntu"),
)


def first_boot(folder: Path, name: str, address: str | None) -> Mapping[str, str]:
    """Return the extra config that vsml gives such a node."""
    node = NodeSpec(
        name=name,
        cpus=2,
        memory=gib(4),
        gpu=GpuRequest(profile="A100-40C"),
        nic=NicRequest(),
        port_group="vm-network",
        address=Address(address=address) if address else None,
    )
    return firstboot.first_boot(node, _CLUSTER, key_pair(folder, "train").public)


def enter(folder: Path, name: str, address: str, keys: str) -> SshShell:
    """Return a way into a guest that takes these host keys and no others."""
    known = KnownHosts(folder / f"known_hosts-{name}")
    if not known.keys(address, 22):
        found = [read_key(" ".join(each)) for each in firstboot.host_keys(keys)]
        known.pin(address, 22, [key for key in found if key], comment="published")
    target = SshTarget(
        name=name,
        host=address,
        known_hosts=known,
        user="ubuntu",
        key_file=key_pair(folder, "train").private,
        timeout_s=60.0,
    )
    return open_shell(target, folder / f"{name}.log", SystemClock())


@dataclass(slots=True)
class Site:
    """A lab with guests, and what it takes to make VMs in it and to enter them."""

    lab: Lab
    content: Any
    folder: Path
    wait: Callable[[Any], Any]

    @property
    def home(self) -> Path:
        return self.lab.password_file.parent / "guests"

    def vm(
        self,
        name: str,
        address: str | None = None,
        *,
        extra: Mapping[str, str] | None = None,
        devices: Sequence[Any] = (),
    ) -> Any:
        """Clone the template, with the first boot that vsml gives its nodes."""
        options = {**first_boot(self.folder, name, address), **(extra or {})}
        config = vim.vm.ConfigSpec(
            extraConfig=[vim.option.OptionValue(key=k, value=v) for k, v in options.items()],
            deviceChange=[vim.vm.device.VirtualDeviceSpec(operation="add", device=each) for each in devices],
            memoryReservationLockedToMax=bool(devices),
        )
        template = next(vm for vm in self._all(vim.VirtualMachine) if vm.config.template)
        pool = self._all(vim.ClusterComputeResource)[0].resourcePool
        spec = vim.vm.CloneSpec(location=vim.vm.RelocateSpec(pool=pool), config=config, powerOn=True)
        return self.wait(template.Clone(template.parent, name, spec))

    def answering(self, vm: Any) -> Any:
        """Return the VM once VMware Tools tell an address."""
        until(lambda: vm.guest.ipAddress and published(vm), f"{vm.name} tells no address")
        return vm

    def shell(self, vm: Any) -> SshShell:
        """Return a way in that takes the published host keys and no others."""
        return enter(self.folder, vm.name, vm.guest.ipAddress, published(vm))

    def remove(self, vm: Any) -> None:
        if vm.runtime.powerState == "poweredOn":
            self.wait(vm.PowerOff())
        self.wait(vm.Destroy())

    def _all(self, kind: Any) -> list[Any]:
        view = self.content.viewManager.CreateContainerView(self.content.rootFolder, [kind], recursive=True)
        return list(view.view)


def published(vm: Any) -> str:
    """Return the host keys that vCenter has of the guest."""
    found = {option.key: option.value for option in vm.config.extraConfig}
    return str(found.get(HOST_KEYS, ""))


def traces(home: Path) -> set[str]:
    """Return what the guests of this lab leave on the machine while they run."""
    links = {link.name for link in Path("/sys/class/net").iterdir() if link.name == hub.device(home)}
    mounts = {line.split()[1] for line in Path("/proc/mounts").read_text().splitlines() if str(home) in line}
    return links | mounts | set(_processes(home))


def _processes(home: Path) -> Iterator[str]:
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            line = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if line.startswith(("sh ", "unshare ")) and str(home) in line:
                yield f"{entry.parent.name} {line}"


@contextmanager
def running(folder: Path, topology: str = server.DEFAULT_TOPOLOGY) -> Iterator[Site]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VSML_STATE_DIR", str(folder / "state"))
        lab, _ = server.start_lab(topology, guests=True)
        session = labs.sign_in(lab)
        try:
            yield Site(lab, session.content, folder, finished)
        finally:
            with suppress(VSphereError):
                session.close()
            server.stop_lab()


def finished(task: Any) -> Any:
    WaitForTask(task)
    return task.info.result
