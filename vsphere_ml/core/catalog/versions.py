"""What needs which vSphere: API versions and virtual hardware versions."""

from __future__ import annotations

DEVICE_GROUPS_API = (8, 0, 0, 1)
DEVICE_GROUPS_HARDWARE = 20
PCI_HARDWARE = 17  # of any vGPU or PCI function
# A VM with more PCI functions than these wants that (Frank Denneman, articles of 2022-08-30 and 2023-04-26).
FEW_FUNCTIONS, MANY_FUNCTIONS_HARDWARE = 16, 20
# What every ESXi from 7.0 on gives a VM, and what 8.0 does by its documents; newer ones are asked how many it is.
VGPUS_PER_VM, _VGPUS_FROM_8 = 4, 8


_SEVERAL_SHARES = (8, 0)


def numbers(version: str) -> tuple[int, ...]:
    """Return a dotted version as numbers; what is not a number ends it."""
    parts: list[int] = []
    for part in version.split("."):
        if not part.isdecimal():
            break
        parts.append(int(part))
    return tuple(parts)


def functions_hardware(functions: int) -> int:
    """Return the virtual hardware that so many PCI functions want of a VM."""
    return MANY_FUNCTIONS_HARDWARE if functions > FEW_FUNCTIONS else PCI_HARDWARE


def has_device_groups(api_version: str) -> bool:
    return numbers(api_version) >= DEVICE_GROUPS_API


def several_shares(esxi_version: str) -> bool:
    """Return whether one VM may have several vGPUs that are not whole GPUs: from vSphere 8.0 on."""
    return numbers(esxi_version) >= _SEVERAL_SHARES


def most_vgpus(esxi_version: str) -> int:
    """Return how many vGPUs one VM may have on this ESXi, where it does not say so itself."""
    return _VGPUS_FROM_8 if numbers(esxi_version) >= (8,) else VGPUS_PER_VM
