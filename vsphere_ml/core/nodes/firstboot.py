"""First-boot data of a new VM's guest, and what is remembered of that."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING

from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.core.model.spec import Address

# The address that the guest was given, in plain words: nothing changes it after the first boot.
ADDRESS_KEY = "guestinfo.vsml.address"
HOST_KEYS = "guestinfo.vsml.hostkeys"  # what the guest publishes its SSH host keys by
DHCP = "DHCP"
# Stands in cloud-init's metadata for the MAC of the management NIC, which vCenter gives the clone. A PVRDMA adapter's
# network device is a vmxnet3 too (Linux, vmw_pvrdma/pvrdma_main.c: function 0 of the same slot), so that the driver's
# name does not distinguish the two.
MANAGEMENT_MAC = "@management-mac@"
_METADATA = "guestinfo.metadata"


NOT_REPORTED = "nothing yet"  # what a clone remembers whose guest customization has not reached vCenter


@dataclass(frozen=True, slots=True, kw_only=True)
class Customization:
    """What vCenter gives a guest through VMware Tools, with `spec` by a specification that vCenter has."""

    host_name: str
    domain: str
    address: Address | None = None  # of the management NIC; None is DHCP
    roce_address: str | None = None  # of the fast NIC; None is DHCP
    more_roce_addresses: tuple[str, ...] = ()  # of its other fast NICs
    spec: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstBoot:
    """First boot data of one guest. `keys` is extra config of its VM; an empty value takes a key of the source away."""

    user: str
    address: Address | None  # None is DHCP
    keys: Mapping[str, str]
    customization: Customization | None = None  # None: cloud-init reads it from `keys`

    def metadata_with(self, mac: str) -> dict[str, str]:
        """Return the extra config in which the management NIC's MAC stands; empty where nothing asks for it."""
        text = base64.b64decode(self.keys.get(_METADATA, "")).decode()
        if MANAGEMENT_MAC not in text:
            return {}
        return {_METADATA: base64.b64encode(text.replace(MANAGEMENT_MAC, mac).encode()).decode()}

    @property
    def digest(self) -> str:
        """Return a fingerprint of all of it, for plans that show none of it."""
        text = json.dumps([dict(self.keys), repr(self.customization)], sort_keys=True)
        return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def in_words(address: Address | None) -> str:
    """Return an address as plans say it, and as a VM remembers it."""
    if address is None:
        return DHCP
    option = f" by way of {address.gateway}" if address.gateway else ""
    names = f", DNS {' '.join(address.dns)}" if address.dns else ""
    return f"{address.address}{option}{names}"
