"""Advanced settings that vsml decides by other means: set beside them they would contradict what it writes."""

from __future__ import annotations

import re

_OFF = "leave it out"
_RESERVED = ("is set on every VM, all of whose memory is reserved and locked (rule memory-reserved)", _OFF)
_P2P = ("is what `peer_to_peer` says", "peer_to_peer = false")
_NUMA = ("is what `numa` says", "numa = 0")
_DEVICE = ("is of a device, and devices come by `gpu` and `nic`", _OFF)

# By key of ESXi's own .vmx files, in lower case: what decides it, and what to write instead. Hot-add, reservations,
# firmware and latency sensitivity are also properties of the vSphere API, and those are what vsml sets.
_KEYS = {
    "pcipassthru.use64bitmmio": ("is set on every VM (rule efi-and-mmio)", _OFF),
    "pcipassthru.64bitmmiosizegb": ("is what `mmio_gib` says (rule efi-and-mmio)", "mmio_gib = 256"),
    "pcipassthru.allowp2p": _P2P,
    "pcipassthru.relaxacsforp2p": _P2P,
    "numa.nodeaffinity": _NUMA,
    "vcpu.hotadd": ("is off on every VM, since CPU hot-add hides NUMA from the guest (rule no-cpu-hot-add)", _OFF),
    "mem.hotadd": ("is off on every VM", _OFF),
    "sched.mem.min": _RESERVED,
    "sched.mem.minsize": _RESERVED,
    "sched.mem.pin": _RESERVED,
    "sched.cpu.min": ("is what `latency` asks for (rule latency-reservation)", 'latency = "high"'),
    "sched.cpu.latencysensitivity": ("is what `latency` says", 'latency = "high"'),
    "firmware": ("is EFI on every VM (rule efi-and-mmio)", _OFF),
    "uefi.secureboot.enabled": ("is off on every VM (rule secure-boot-off)", _OFF),
}
_PATTERNS = (
    (re.compile(r"(guestinfo\.)?vsml\..*"), ("is by what vsml knows its own VMs", _OFF)),
    (re.compile(r"numa\.\d+\.affinity"), _NUMA),
    (re.compile(r"pcipassthru\d+\.(present|vgpu|id|vendorid|deviceid|systemid|alloweddevices|customlabel)"), _DEVICE),
)


def refusal(key: str) -> tuple[str, str] | None:
    """Return what decides an advanced setting instead of `extra_config`, and what to write; None when nothing does."""
    wanted = key.strip().casefold()
    matching = (instead for pattern, instead in _PATTERNS if pattern.fullmatch(wanted))
    return _KEYS.get(wanted) or next(matching, None)
