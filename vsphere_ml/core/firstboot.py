"""What a new VM's guest is told at its first boot, and what is remembered of that."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.core.spec import Address

# What the guest was told of its address, in plain words: nothing changes it after the first boot.
ADDRESS_KEY = "guestinfo.vsml.address"
DHCP = "DHCP"


UNTOLD = "nothing yet"  # what a clone remembers whose guest customization has not reached vCenter


@dataclass(frozen=True, slots=True, kw_only=True)
class Customization:
    """What vCenter tells a guest through VMware Tools, with `spec` by a specification that vCenter has."""

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

    @property
    def digest(self) -> str:
        """Return a fingerprint of all of it, for plans that show none of it."""
        text = json.dumps([dict(self.keys), repr(self.customization)], sort_keys=True)
        return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def in_words(address: Address | None) -> str:
    """Return an address as plans say it, and as a VM remembers it."""
    if address is None:
        return DHCP
    way = f" by way of {address.gateway}" if address.gateway else ""
    names = f", DNS {' '.join(address.dns)}" if address.dns else ""
    return f"{address.address}{way}{names}"
