"""What the system of the source decides, as vCenter has it in `guestId`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vsphere_ml.core.rules.rule import Words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.model.spec import NodeSpec

# VirtualMachineGuestOsIdentifier names 64-bit systems so: `ubuntu64Guest`, `rhel9_64Guest`, `otherGuest64`. Systems
# that came later than 32-bit processors went, such as `windowsHyperVGuest`, say nothing.
_WIDE = re.compile(r"64|HyperV|vmkernel|crx", re.IGNORECASE)
_NO_LINUX = re.compile(r"win|darwin|freebsd|solaris|vmkernel|dos|os2|netware|unixware|openserver", re.IGNORECASE)
_PAIR = 2


def check_guest_width(guest: str, node: NodeSpec) -> Iterator[Words]:
    if not node.gpu.is_passthrough and not _WIDE.search(guest):
        yield Words(f"its guest is {guest}, and a vGPU wants a 64-bit system")


def no_linux_for_link(guest: str, node: NodeSpec) -> Iterator[Words]:
    if node.gpu.kind.spec.linked and node.gpu.count <= _PAIR and _NO_LINUX.match(guest):
        yield Words(f"its guest is {guest}, and NVLink joins vGPUs in Linux only")


def no_linux_for_switch(guest: str, node: NodeSpec) -> Iterator[Words]:
    if node.gpu.kind.spec.linked and node.gpu.count > _PAIR and _NO_LINUX.match(guest):
        yield Words(f"its guest is {guest}, and an NVSwitch joins vGPUs in Linux only")


def no_linux_for_gpudirect(guest: str, node: NodeSpec) -> Iterator[Words]:
    if node.nic.is_function and node.peer_to_peer and not node.gpu.is_passthrough and _NO_LINUX.match(guest):
        yield Words(f"its guest is {guest}, and GPUDirect RDMA is for Linux; peer_to_peer = false does without")


def no_linux_for_pvrdma(guest: str, node: NodeSpec) -> Iterator[Words]:
    if node.nic.kind.spec.paravirtual and (_NO_LINUX.match(guest) or not _WIDE.search(guest)):
        yield Words(f"its guest is {guest}, and PVRDMA is for 64-bit Linux")
