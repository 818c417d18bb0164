"""How much of a device is left, as vCenter itself counts it: vSphere 9 answers for a host or a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from vsphere_ml.core.model.inventory import ClusterRef, HostRef


@dataclass(frozen=True, slots=True)
class OnHost:
    ref: HostRef


@dataclass(frozen=True, slots=True)
class InCluster:
    ref: ClusterRef


Place: TypeAlias = OnHost | InCluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What is to be counted: a vGPU profile, a device group, or else functions for dynamic DirectPath."""

    profile: str = ""  # as the host spells it
    group: str = ""
    vendor: int = 0
    device: int = 0
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """vCenter's answer: `most` is what there would be if no VM ran, `reserved` what is kept for VMs not yet started."""

    consumed: int
    remaining: int
    most: int
    reserved: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectPathProfile:
    """A name that somebody gave to a device, from vSphere 9 on; a cluster file names the device itself."""

    name: str
    vendor: str
    kind: str  # as the API names it: Vmiop (a vGPU), VirtualDeviceGroup, Dynamic, Dvx, or what is new there
    device: str  # the vGPU profile, device group, PCI ids with a label, or class; empty of a kind that is not known


Counts: TypeAlias = Mapping[Place, Mapping[Ask, Count]]
