"""What the cluster file alone decides."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vsphere_ml.core.catalog import catalogue
from vsphere_ml.core.catalog.boards import BY_CODE
from vsphere_ml.core.catalog.profiles import ProfileName, read
from vsphere_ml.core.catalog.versions import DEVICE_GROUPS_HARDWARE, PCI_HARDWARE, functions_hardware
from vsphere_ml.core.model.device_kinds import GpuKind
from vsphere_ml.core.nodes.gpu import PAIR, gpu_board, profile_note
from vsphere_ml.core.order import list_first
from vsphere_ml.core.rules.rule import Words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.model.spec import ClusterSpec, NodeSpec

# NVIDIA's lists of boards with GPUDirect RDMA in VMs are of SR-IOV-capable GPUs: Ampere, Ada and Hopper.
_BEFORE_AMPERE = frozenset({"V100X", "V100DX", "T4"})
_CONNECTX = re.compile(r"connect-?x[- ]?([5-9]|\d\d)\b|blue-?field\b", re.IGNORECASE)
_SWITCH = re.compile(r"pciPassthru\d*\.cfg\.(enable_uvm|enable_debugging|enable_profiling)", re.IGNORECASE)
_AFFINITIES = ("sched.cpu.affinity", "sched.mem.affinity")
_SHOWN = 3
_ON = frozenset({"1", "true"})
_LIMITS = {
    GpuKind.PASSTHROUGH: "GPUs by fixed DirectPath: no DRS, no vMotion, no snapshot, no HA restart on another host",
    GpuKind.DYNAMIC: "GPUs by dynamic DirectPath: HA and DRS place the VM when it starts; no vMotion",
}


def hardware_of_groups(node: NodeSpec) -> Iterator[Words]:
    groups = node.gpu.kind.spec.linked or node.nic.kind.spec.only_group
    if groups and node.hardware_version is not None and node.hardware_version < DEVICE_GROUPS_HARDWARE:
        text = f"device groups need virtual hardware {DEVICE_GROUPS_HARDWARE}, and {node.hardware_version} is asked for"
        yield Words(text, ("hardware_version",))


def hardware_of_functions(node: NodeSpec) -> Iterator[Words]:
    needed = functions_hardware(node.functions)
    if needed > PCI_HARDWARE and node.hardware_version is not None and node.hardware_version < needed:
        text = (
            f"{node.functions} PCI functions need virtual hardware {needed}, and {node.hardware_version} is asked for"
        )
        yield Words(text, ("hardware_version",))


def unknown_profile(node: NodeSpec) -> Iterator[Words]:
    profile = _profile(node)
    if profile is not None and (why := profile_note(profile)) is not None:
        yield Words(f"{why}; whether it is there, and how large, the hosts say", ("gpu", "profile"))


def peer_to_peer(node: NodeSpec) -> Iterator[Words]:
    if node.gpu.count > 1 and not (node.gpu.kind.spec.is_passthrough or node.gpu.kind.spec.linked):
        yield Words(f"its {node.gpu.count} vGPUs exchange data through the VM's memory, not with each other")


def bridged_pairs(node: NodeSpec) -> Iterator[Words]:
    """Yield that more than two GPUs of a PCIe board are joined in pairs; H200's bridges may join four."""
    board = gpu_board(node.gpu)
    if board is None or node.gpu.count <= PAIR or board.code == "H200":
        return
    if board.code in catalogue.NVLINK - catalogue.NVSWITCH:
        pairs = -(-node.gpu.count // PAIR)
        yield Words(
            f"{node.gpu.count} {board.title} are {pairs} pairs, as far as bridges join them: between pairs data goes "
            "over PCIe",
            ("gpu", "count"),
        )


def unified_memory(node: NodeSpec) -> Iterator[Words]:
    if node.gpu.kind.spec.linked and "enable_uvm" in _enabled_keys(node):
        yield Words("unified memory is on, and takes NVLink away between the GPUs of a VM", ("extra_config",))


def memory_pools(node: NodeSpec) -> Iterator[Words]:
    if node.gpu.count and not node.gpu.is_passthrough and "enable_uvm" not in _enabled_keys(node):
        yield Words(
            'NCCL 2.23 and newer may not start without unified memory, `"pciPassthru0.cfg.enable_uvm" = "1"`, which '
            "only a vGPU with a whole framebuffer can have",
            ("extra_config",),
        )


def no_motion(node: NodeSpec) -> Iterator[Words]:
    if (on := _enabled_keys(node)) and not node.gpu.is_passthrough:
        yield Words(f"{', '.join(on)}: the VM can neither be moved by vMotion nor suspended", ("extra_config",))


def no_numa_scheduling(node: NodeSpec) -> Iterator[Words]:
    wanted = {key.casefold(): value.strip().casefold() for key, value in node.extra_config.items()}
    for key in _AFFINITIES:
        if wanted.get(key, "all") not in {"", "all"}:
            yield Words(
                f"{key} takes the VM out of NUMA scheduling; `numa` binds it and leaves it in", ("extra_config",)
            )


def no_gpudirect(node: NodeSpec) -> Iterator[Words]:
    """Yield what GPUDirect RDMA is not documented for; a node without peer-to-peer does not ask for it."""
    if not node.nic.is_function or not node.peer_to_peer:
        return
    instead = "peer_to_peer = false does without GPUDirect"
    if not _CONNECTX.search(node.nic.model):
        documented = "ConnectX-5 and newer and for BlueField"
        text = f"GPUDirect RDMA is documented for {documented}, not for {node.nic.model}; {instead}"
        yield Words(text, ("nic", "model"))
    profile = _profile(node)
    if profile is not None and profile.board in _BEFORE_AMPERE:
        title = BY_CODE[profile.board].title
        yield Words(
            f"GPUDirect RDMA in VMs is documented from Ampere on, not for {title}; {instead}", ("gpu", "profile")
        )


def link_unused(node: NodeSpec) -> Iterator[Words]:
    profile = _profile(node)
    if profile is None or node.gpu.kind.spec.linked or profile.board not in catalogue.NVLINK:
        return
    if node.gpu.count > 1 and not profile.is_full:  # of one GPU nobody expects a link
        yield Words("its GPUs are given in parts, so their NVLink, where they have one, carries nothing")


def no_migration(node: NodeSpec) -> Iterator[Words]:
    if node.gpu.kind in _LIMITS:
        yield Words(_LIMITS[node.gpu.kind], ("gpu", "kind"))
    elif node.nic.kind.spec.function and not node.nic.kind.spec.group:
        yield Words(f"its NIC is {node.nic.kind}: no vMotion, no snapshot", ("nic", "kind"))


def check_uneven_gpus(spec: ClusterSpec) -> Iterator[Words]:
    kinds: dict[str, list[str]] = {}
    for node in spec.nodes:
        kinds.setdefault(f"{node.gpu.count} × {node.gpu}", []).append(node.name)
    if len(kinds) > 1:
        text = "; ".join(f"{list_first(names, _SHOWN)}: {kind}" for kind, names in kinds.items())
        yield Words(f"a job over all nodes runs at the pace of the slowest GPU: {text}")


def _profile(node: NodeSpec) -> ProfileName | None:
    return None if node.gpu.is_passthrough else read(node.gpu.profile)


def _enabled_keys(node: NodeSpec) -> tuple[str, ...]:
    if not node.extra_config:
        return ()
    found = ((_SWITCH.fullmatch(key), value) for key, value in node.extra_config.items())
    return tuple(sorted({match[1].lower() for match, value in found if match and value.strip().casefold() in _ON}))
