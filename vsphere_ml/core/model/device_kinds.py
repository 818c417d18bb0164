"""By which kinds of devices a VM can be given GPUs and fast NICs: a member for each, with what is to be known of it.

Everybody else asks for a kind's spec and compares it with none, so that the next one is added here.
"""

from __future__ import annotations

from vsphere_ml.core.spec_enum import SpecEnum
from vsphere_ml.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class _GpuTraits:
    """What a way to give GPUs is; all false: vGPUs of a whole GPU's time."""

    mig: bool = False  # vGPUs of MIG slices
    linked: bool = False  # whole vGPUs joined by NVLink, in a device group of the vendor
    is_passthrough: bool = False  # physical GPUs, by DirectPath
    dynamic: bool = False  # which ones the host decides at power-on


class GpuKind(SpecEnum):
    """Ways to give a VM a GPU."""

    spec: _GpuTraits

    VGPU = "vgpu", _GpuTraits()
    MIG = "mig", _GpuTraits(mig=True)
    NVLINK = "nvlink", _GpuTraits(linked=True)
    PASSTHROUGH = "passthrough", _GpuTraits(is_passthrough=True)
    DYNAMIC = "dynamic-directpath", _GpuTraits(is_passthrough=True, dynamic=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _NicTraits:
    """What a fast NIC of a kind can be; all false: there is none."""

    group: bool = False  # a NIC in a device group with its GPU
    virtual: bool = False  # a virtual function, by SR-IOV
    physical: bool = False  # a physical function, by DirectPath
    paravirtual: bool = False  # an adapter on a distributed switch, with any GPU; no PCI function
    no_function: str = ""  # why no PCI function of a NIC is looked for

    @property
    def exists(self) -> bool:
        """Whether there is such an adapter at all."""
        return self.function or self.paravirtual

    @property
    def function(self) -> bool:
        """Whether it is a PCI function of an adapter."""
        return self.group or self.virtual or self.physical

    @property
    def only_group(self) -> bool:
        return self.group and not self.virtual

    @property
    def only_physical(self) -> bool:
        return self.physical and not self.virtual


class NicKind(SpecEnum):
    """Ways to give a VM a fast NIC. AUTO is the device group where one fits, else our own pairing."""

    spec: _NicTraits

    AUTO = "auto", _NicTraits(group=True, virtual=True, physical=True)
    DEVICE_GROUP = "device-group", _NicTraits(group=True)
    SRIOV = "sriov", _NicTraits(virtual=True)
    PASSTHROUGH = "passthrough", _NicTraits(physical=True)
    PVRDMA = (
        "pvrdma",
        _NicTraits(paravirtual=True, no_function="PVRDMA was asked for, which goes with any GPU"),
    )
    NONE = "none", _NicTraits(no_function="no fast NIC was asked for")
