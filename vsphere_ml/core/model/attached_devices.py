"""Which GPUs and which NIC of a host a running VM has, as the host reports it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vsphere_ml.core.model.inventory import Host, PciAddress, Vm


def gpus(host: Host | None, vm: Vm) -> tuple[PciAddress, ...]:
    """Return the GPUs that back a VM's vGPUs, then those that are handed through to it whole."""
    if host is None:
        return ()
    backing = (gpu.address for gpu in host.gpus if any(use.vm == vm.ref for use in gpu.used_by))
    return (*backing, *(gpu.address for gpu in host.passthrough_gpus if gpu.held_by == vm.ref))


def nics(host: Host | None, vm: Vm) -> tuple[PciAddress, ...]:
    """Return the physical functions that a running VM uses, whole or a part of."""
    if host is None or not vm.powered_on:
        return ()
    return tuple(nic.address for nic in host.nics if nic.held_by == vm.ref or vm.ref in nic.vf_holders)
