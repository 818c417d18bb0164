"""PCI ids of NVIDIA's network adapters: of a port as the host has it, and of the virtual functions that a VM gets.

Source: `supported-nic-ids` of the SR-IOV Network Operator's chart, as Mellanox/network-operator has it; 101d and 101e
of ConnectX-6 Dx also from pci.ids.
"""

from __future__ import annotations

from vsphere_ml.core.catalog.adapters import is_model
from vsphere_ml.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class _NicIds:
    """Device ids of one model; from ConnectX-6 Dx on, the virtual functions of all models share one."""

    physical: int
    virtual: int


IDS_BY_MODEL = {
    "ConnectX-4": _NicIds(0x1013, 0x1014),
    "ConnectX-4 Lx": _NicIds(0x1015, 0x1016),
    "ConnectX-5": _NicIds(0x1017, 0x1018),
    "ConnectX-5 Ex": _NicIds(0x1019, 0x101A),
    "ConnectX-6": _NicIds(0x101B, 0x101C),
    "ConnectX-6 Dx": _NicIds(0x101D, 0x101E),
    "ConnectX-6 Lx": _NicIds(0x101F, 0x101E),
    "ConnectX-7": _NicIds(0x1021, 0x101E),
    "ConnectX-8": _NicIds(0x1023, 0x101E),
    "BlueField-2": _NicIds(0xA2D6, 0x101E),
    "BlueField-3": _NicIds(0xA2DC, 0x101E),
}


def find_nic_ids(model: str) -> _NicIds | None:
    """Return the ids of a model, however it is written; None for one that is not in the table."""
    same = (ids for name, ids in IDS_BY_MODEL.items() if is_model(model, name) and is_model(name, model))
    return next(same, None)
