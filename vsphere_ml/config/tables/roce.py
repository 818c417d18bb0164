"""The `[roce]` table: what the network under the fast NICs is to be."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vsphere_ml.core.model.spec import HostConfigKind, RoceSpec
from vsphere_ml.core.tools.roce import MTUS

if TYPE_CHECKING:
    from vsphere_ml.config import schema
    from vsphere_ml.config.mistakes import Mistakes
    from vsphere_ml.core.model.spec import HostConfigSpec

_EXAMPLE = "[roce] with pfc_priority = 3, dscp = 26, ecn = true"
_GUESTS_MTU = "roce_mtu"  # the setting of the playbook `roce`


def check_roce(
    table: schema.Roce | None, guest: schema.GuestTable | None, ready: HostConfigSpec, mistakes: Mistakes
) -> None:
    """Report a switch's MTU that is less than that of the guests, and settings that nobody names."""
    if HostConfigKind.ROCE in ready.kinds and not fabric(table, guest).of_hosts:
        mistakes.add(("host_config", "kinds"), "`roce` asks for nothing, since [roce] sets nothing of hosts", _EXAMPLE)
    theirs = _of_guests(guest)
    if table is None or table.mtu is None or theirs is None or table.mtu >= theirs:
        return
    text = f"is less than the {theirs} that guest.settings.{_GUESTS_MTU} gives the guests"
    mistakes.add(("roce", "mtu"), text, f"mtu = {theirs}")


def fabric(table: schema.Roce | None, guest: schema.GuestTable | None) -> RoceSpec:
    """Return the table as a value, with the guests' MTU where it names none."""
    known = RoceSpec(mtu=_of_guests(guest) or RoceSpec().mtu)
    if table is None:
        return known
    return RoceSpec(
        mtu=table.mtu or known.mtu,
        raise_mtu=table.raise_mtu,
        pfc_priority=table.pfc_priority,
        dscp=table.dscp,
        ecn=table.ecn,
    )


def _of_guests(guest: schema.GuestTable | None) -> int | None:
    """Return the MTU of the guests; a text that is none, or too large, is the playbook's to refuse."""
    text = (guest.settings or {}).get(_GUESTS_MTU, "") if guest is not None else ""
    return int(text) if re.fullmatch(r"[0-9]{1,4}", text) and int(text) in MTUS else None
