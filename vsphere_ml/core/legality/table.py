"""The rules, one row each. A new one is a row here, a predicate beside it, and a test that breaks it."""

from __future__ import annotations

from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.legality import by_host, by_seat, by_source, by_wish
from vsphere_ml.core.legality.rule import Rule, Severity
from vsphere_ml.core.nearest import nearest

_ERROR, _WARNING, _INFO = Severity.ERROR, Severity.WARNING, Severity.INFO
_PASSED_OVER = "hosts that break it are passed over, each with the reason"
_SET = "vsml sets it on every VM, and reads it back before power-on"
_REFUSED = "the cluster file is refused"

RULES: tuple[Rule, ...] = (
    Rule(
        id="memory-reserved",
        number=1,
        severity=_ERROR,
        says="a VM with a vGPU or a PCI function reserves all of its memory, and locks the reservation",
        sources=("FD-BIOS", "BCOM-309986", "VMOP"),
        kept=_SET,
    ),
    Rule(
        id="efi-and-mmio",
        number=2,
        severity=_ERROR,
        says="a VM with a C-series vGPU boots a 64-bit system by EFI, and has 64-bit MMIO space by NVIDIA's table",
        sources=("CSER", "FD-BIOS"),
        kept=f"{_SET}; `mmio_gib` below the table is refused in the file, a template that boots by BIOS, or is of a "
        "32-bit system, with the plan",
        of_source=by_source.narrow,
    ),
    Rule(
        id="secure-boot-off",
        number=3,
        severity=_WARNING,
        says="secure boot is off, since guest drivers may come as modules that nobody signed",
        sources=("OCP",),
        kept=_SET,
    ),
    Rule(
        id="hardware-version",
        number=4,
        severity=_ERROR,
        says="PCI functions need virtual hardware 17, vendor device groups 20",
        sources=("FD-DDP", "VMOP", "FD-TOPO8", "LATENCY"),
        versions="virtual hardware 20 from vSphere 8.0 on",
        kept=f"VMs are upgraded as far as needed; {_REFUSED} when it asks for less; {_PASSED_OVER}",
        of_node=by_wish.hardware_of_groups,
    ),
    Rule(
        id="several-vgpus",
        number=5,
        severity=_ERROR,
        says="several vGPUs in one VM are whole GPUs on vSphere 7, and any C-series profile from 8.0 on",
        sources=("CSER",),
        versions="7.0, and from 8.0 on",
        kept=_PASSED_OVER,
    ),
    Rule(
        id="one-kind-of-vgpu",
        number=6,
        severity=_ERROR,
        says="all vGPUs of a VM are of one board type and one series",
        sources=("CSER",),
        kept="a node has one profile, and a file that gives it several is refused",
    ),
    Rule(
        id="vgpus-per-vm",
        number=7,
        severity=_ERROR,
        says="a VM has 4 vGPUs at most on vSphere 7, and 8 on vSphere 8",
        sources=("FD-LIM", "FD-MULTI"),
        versions="7.0: 4; from 8.0 on: 8",
        kept=f"{_REFUSED} above 8; {_PASSED_OVER}",
        of_node=by_wish.many_vgpus,
    ),
    Rule(
        id="functions-per-vm",
        number=8,
        severity=_ERROR,
        says="a VM has 16 passthrough PCI devices at most on vSphere 7.0, 32 on 8.0, 64 on 8.0 U1, 128 on 8.0 U2; more "
        "than 16 want virtual hardware 20",
        sources=("FD-LIM", "BCOM-309986", "FD-MULTI"),
        versions="7.0: 16; 8.0: 32; 8.0 U1: 64; from 8.0 U2 on: 128",
        kept=f"VMs are upgraded as far as needed; {_REFUSED} when it asks for less; {_PASSED_OVER}",
        of_node=by_wish.hardware_of_functions,
        of_host=by_host.many_functions,
    ),
    Rule(
        id="nvlink-whole-gpus",
        number=9,
        severity=_ERROR,
        says="NVLink joins whole, time-sliced C-series vGPUs of a board that has it, in one Linux VM, and never MIG",
        sources=("MULTI", "CSER", "P2P"),
        kept=f"{_REFUSED}; a template of another system with the plan",
        of_source=by_source.no_linux_for_link,
    ),
    Rule(
        id="no-pcie-peers",
        number=10,
        severity=_WARNING,
        says="vGPUs do not exchange data over PCIe with each other; only NVLink joins them",
        sources=("MULTI", "P2P"),
        kept="told with the plan when a node has several vGPUs that are not joined",
        of_node=by_wish.peer_to_peer,
    ),
    Rule(
        id="nvswitch",
        number=11,
        severity=_ERROR,
        says="an NVSwitch joins the whole vGPUs of an HGX board in one Linux VM",
        sources=("CSER", "NVSW"),
        versions="Ampere: from ESXi 8.0 U1 on; Hopper: from 8.0 U2 on",
        kept=f"{_REFUSED} for boards without one, a template of another system with the plan; {_PASSED_OVER}",
        of_source=by_source.no_linux_for_switch,
        of_host=by_host.old_for_nvswitch,
    ),
    Rule(
        id="nvlink-without-unified-memory",
        number=12,
        severity=_WARNING,
        says="unified memory takes NVLink away between the A100 of a VM: `enable_uvm` stays off",
        sources=("P2P",),
        kept="vsml does not switch it on; told with the plan when `extra_config` does",
        of_node=by_wish.unified_memory,
    ),
    Rule(
        id="fixed-on-large-servers",
        number=13,
        severity=_ERROR,
        says="in servers of more than four GPUs a VM gets several only by fixed DirectPath, not by dynamic",
        sources=("MULTI",),
        kept=_PASSED_OVER,
        of_host=by_host.many_by_dynamic,
    ),
    Rule(
        id="gpudirect-rdma",
        number=14,
        severity=_ERROR,
        says="GPUDirect RDMA is for C-series on Ampere, Ada and Hopper, in Linux VMs, with ConnectX-5, 6 or 7",
        sources=("CSER",),
        kept=f"{_REFUSED}, a template of another system with the plan; `peer_to_peer = false` does without GPUDirect",
        of_source=by_source.no_linux_for_gpudirect,
        of_node=by_wish.no_gpudirect,
    ),
    Rule(
        id="gpudirect-storage",
        number=15,
        severity=_ERROR,
        says="GPUDirect Storage is not for Ampere, and wants open kernel modules and Ubuntu 20.04 or 22.04",
        sources=("CSER",),
        kept="vsml offers no way to set it up",
    ),
    Rule(
        id="gpu-near-nic",
        number=16,
        severity=_ERROR,
        says="for GPUDirect RDMA, GPU and NIC sit under one root complex or PCIe switch",
        sources=("FD-MULTI", "GPUOP"),
        kept="the nearest pair of a host is taken, and one that is farther apart is told with the plan",
    ),
    Rule(
        id="ats-needs-esxi",
        number=17,
        severity=_WARNING,
        says="ATS, which GPUDirect RDMA in VMs wants, came with ESXi 7.0 U2, there with Intel CPUs only",
        sources=("FD-MULTI", "LAMW"),
        versions="from 7.0 U2 on; 7.0 U2 with Intel CPUs",
        kept="told with the plan; `vsml enable-ats` refuses such hosts",
        of_seat=by_seat.no_ats,
    ),
    Rule(
        id="pvrdma-one-switch",
        number=18,
        severity=_ERROR,
        says="PVRDMA wants all VMs on one distributed switch, virtual hardware 13, 64-bit Linux, and a NIC as its only "
        "uplink",
        sources=("PVRDMA",),
        versions="from 6.5 on",
        kept=f"nodes that are not on one distributed switch, and a template of another system, are refused; other "
        f"uplinks of a host, and a VMkernel adapter that is elsewhere, are told with the plan; {_PASSED_OVER}",
        of_source=by_source.no_linux_for_pvrdma,
    ),
    Rule(
        id="pvrdma-host-memory",
        number=19,
        severity=_WARNING,
        says="PVRDMA carries the memory of the VM; no document found tells of GPUDirect RDMA over it",
        sources=("PVRDMA",),
        kept="told with the plan",
    ),
    Rule(
        id="nvlink-of-single-gpus",
        number=20,
        severity=_INFO,
        says="a GPU that is given alone or in parts does not use its NVLink",
        sources=("FD-TOPO",),
        kept="told by `vsml check`",
        of_node=by_wish.link_unused,
    ),
    Rule(
        id="mig-or-time-sliced",
        number=21,
        severity=_ERROR,
        says="a GPU gives MIG-backed or time-sliced vGPUs, never both; time-sliced ones of one size, or of mixed sizes",
        sources=("FD-FRAC", "FD-MODES"),
        versions="mixed sizes from 8.0 U3 on",
        kept="GPUs in another mode, or with vGPUs of another size, are passed over with the reason; a GPU that nobody "
        "uses is put into MIG mode when `[make_ready]` has the kind `mig`",
    ),
    Rule(
        id="what-keeps-vms-still",
        number=22,
        severity=_INFO,
        says="fixed DirectPath rules out DRS, vMotion, snapshots and HA on other hosts, dynamic DirectPath vMotion",
        sources=("FD-DDP",),
        kept="told by `vsml check`",
        of_node=by_wish.no_migration,
    ),
    Rule(
        id="switches-that-stop-motion",
        number=23,
        severity=_INFO,
        says="unified memory, CUDA debuggers and profilers keep a VM with a vGPU from vMotion and suspend",
        sources=("CSER",),
        kept="told by `vsml check` when `extra_config` switches one on",
        of_node=by_wish.no_motion,
    ),
    Rule(
        id="no-cpu-hot-add",
        number=24,
        severity=_WARNING,
        says="CPU hot-add is off, since it hides NUMA from the guest",
        sources=("NUMA",),
        kept=_SET,
    ),
    Rule(
        id="latency-reservation",
        number=25,
        severity=_ERROR,
        says="latency sensitivity `high` wants all memory and all CPU reserved",
        sources=("LATENCY",),
        kept=_SET,
    ),
    Rule(
        id="new-mig-profiles",
        number=26,
        severity=_ERROR,
        says="MIG profiles of one slice with a quarter of the memory, and those with media engines (ME), want 8.0 U3",
        sources=("CSER",),
        versions="from 8.0 U3 on",
        kept=_PASSED_OVER,
    ),
    Rule(
        id="sxm-on-7-and-8",
        number=27,
        severity=_INFO,
        says="several vGPUs of SXM boards in a VM are documented for vSphere 7 and 8",
        sources=("CSER",),
        versions="7.0 and 8.0",
        kept="told with the plan elsewhere",
        of_seat=by_seat.sxm_elsewhere,
    ),
    Rule(
        id="alike-in-a-job",
        number=28,
        severity=_WARNING,
        says="the VMs of one job have the same profile, since every step waits for the slowest rank (our reasoning)",
        sources=(),
        kept="told with the plan; driver and image are those of the cluster's one set of playbooks",
        of_cluster=by_wish.uneven,
    ),
    Rule(
        id="host-graphics",
        number=29,
        severity=_ERROR,
        says="a host gives vGPUs when its graphics type is Shared Direct",
        sources=("FD-VGPU",),
        kept=f"{_PASSED_OVER}; made so when `[make_ready]` has the kind `graphics`",
    ),
    Rule(
        id="host-functions",
        number=30,
        severity=_ERROR,
        says="a port hands out as many virtual functions as its driver was loaded with, 127 at most",
        sources=("NMLX5",),
        kept=f"{_PASSED_OVER}; made so when `[make_ready]` has the kind `sriov`",
    ),
    Rule(
        id="host-passthrough",
        number=31,
        severity=_ERROR,
        says="a GPU or a port is handed through whole when passthrough is switched on for it on the host",
        sources=("PASSTHRU",),
        kept=f"{_PASSED_OVER}; made so when `[make_ready]` has the kind `passthrough`",
    ),
    Rule(
        id="host-pvrdma",
        number=32,
        severity=_ERROR,
        says="for PVRDMA a host has a VMkernel adapter tagged for it, and a firewall that lets it through",
        sources=("PVRDMA",),
        versions="from 6.5 on",
        kept=f"{_PASSED_OVER}; made so when `[make_ready]` has the kind `pvrdma`",
    ),
)
BY_ID = {rule.id: rule for rule in RULES}


def find(text: str) -> Rule:
    """Return a rule by its id or number; ConfigError `rule.unknown` when there is none."""
    wanted = text.strip().casefold()
    for rule in RULES:
        if wanted in {rule.id, str(rule.number)}:
            return rule
    near = nearest(wanted, BY_ID)
    raise ConfigError(
        f"there is no rule `{text}`",
        code="rule.unknown",
        target=text,
        hint=f"did you mean `{near}`?" if near else "`vsml rules` lists them",
    )
