"""A guest's first-boot data: by its template's disk, cloud-init's guestinfo, a vSphere customization."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING, Any

from vsphere_ml.lab.guests import image
from vsphere_ml.lab.guests.boot import cloudinit
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FAST = ("sriov", "passthrough", "pvrdma")


@dataclass(frozen=True, slots=True, kw_only=True)
class LabGpu:
    """A GPU as the guest is to see it."""

    board: str = "A100-PCIE-40GB"
    id: str = "10de:20f1"
    name: str = "GA100 [A100 PCIe 40GB]"  # as lspci prints it
    profile: str = ""  # of a vGPU; empty when the GPU was handed over whole


@dataclass(frozen=True, slots=True, kw_only=True)
class LabVm:
    """What a power event says of a VM."""

    name: str
    id: str
    extra_config: Mapping[str, str]
    nics: tuple[Mapping[str, Any], ...] = ()
    gpus: tuple[LabGpu, ...] = ()
    nvlinks: int = 0  # between any two GPUs; 0 when they are not joined
    template: Mapping[str, Any] = field(default_factory=dict)  # what its template's disk has
    customization: Mapping[str, Any] | None = None  # what vCenter has to give the guest now, once

    @property
    def adapters(self) -> list[Mapping[str, Any]]:
        """The adapters as the guest numbers them: the one for management first, then the fast ones."""
        return sorted(self.nics, key=lambda nic: nic.get("kind") in FAST) or [{}]

    @property
    def image(self) -> str:
        """The name of the image that its disk begins with."""
        return str(self.template.get("image") or image.CLOUD.name)

    @property
    def has_cloud_init(self) -> bool:
        return bool(self.template.get("cloud_init", True))


@dataclass(frozen=True, slots=True, kw_only=True)
class LabFirstBoot:
    """What the guest shall be. `addresses` are static ones by the adapter's number; others are DHCP's."""

    hostname: str
    domain: str = ""
    addresses: Mapping[int, str] = field(default_factory=dict)
    dns: tuple[str, ...] = ()
    search: tuple[str, ...] = ()
    userdata: Mapping[str, Any] = field(default_factory=dict)


def read_first_boot(vm: LabVm, at: Path) -> LabFirstBoot:
    """Return what the guest with this folder is given now, or was given once."""
    metadata = cloudinit.decode_guestinfo(vm.extra_config, "metadata") if vm.has_cloud_init else {}
    userdata = cloudinit.userdata(vm.extra_config) if vm.has_cloud_init else {}
    users = [*_template_user(vm.template), *(userdata.get("users") or ())]
    everything = userdata | {"users": users}
    # cloud-init takes guestinfo before a customization (its datasource VMware tries the transports in that order).
    if not metadata and (customized := _customization(vm, at)) is not None:
        return _read_customization(customized, everything)
    return LabFirstBoot(
        hostname=cloudinit.hostname(metadata, vm.name),
        addresses=cloudinit.addresses(metadata, vm.adapters),
        dns=cloudinit.nameservers(metadata),
        userdata=everything,
    )


def _template_user(template: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the user that the template's disk has."""
    if not (user := template.get("user")):
        return []
    keys = template.get("authorized_keys") or ()
    return [{"name": user, "sudo": "ALL=(ALL) NOPASSWD:ALL", "ssh_authorized_keys": keys}]


def _customization(vm: LabVm, at: Path) -> Mapping[str, Any] | None:
    """Return what vCenter gives now, saved for later boots: it gives it once, and the guest's disk remembers."""
    file = at / "customization.json"
    if vm.customization is not None:
        addresses = {number: nic["address"] for number, nic in enumerate(vm.adapters) if nic.get("address")}
        file.write_text(json.dumps({**vm.customization, "addresses": addresses}))
    with suppress(OSError):
        read: Mapping[str, Any] = json.loads(file.read_text())
        return read
    return None


def _read_customization(customization: Mapping[str, Any], userdata: Mapping[str, Any]) -> LabFirstBoot:
    return LabFirstBoot(
        hostname=str(customization["hostname"]),
        domain=str(customization.get("domain") or ""),
        addresses={int(number): address for number, address in customization["addresses"].items()},
        dns=tuple(customization.get("dns") or ()),
        search=tuple(customization.get("search") or ()),
        userdata=userdata,
    )
