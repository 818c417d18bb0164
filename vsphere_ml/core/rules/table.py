"""The rules, one row each. A new one is a row here, a predicate beside it, and a test that breaks it."""

from __future__ import annotations

from vsphere_ml.core.diagnostics import Severity
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.nearest import nearest_name
from vsphere_ml.core.rules import by_host, by_placement, by_source, by_spec
from vsphere_ml.core.rules.rule import Rule

_ERROR, _WARNING, _INFO = Severity.ERROR, Severity.WARNING, Severity.INFO
_PASSED_OVER = "hosts that break it are passed over, each with the reason"
_SET = "vsml sets it on every VM, and reads it back before power-on"
_REFUSED = "the cluster file is refused"

RULES: tuple[Rule, ...] = (
    Rule(
        id="memory-reserved",
        number=1,
        severity=_ERROR,
        summary="a VM with a vGPU or a PCI function reserves all of its memory, and locks the reservation",
        sources=("FD-BIOS", "BCOM-309986", "VMOP"),
        enforced_by=_SET,
    ),
    Rule(
        id="efi-and-mmio",
        number=2,
        severity=_ERROR,
        summary="a VM with a C-series vGPU boots a 64-bit system by EFI, and has 64-bit MMIO space by NVIDIA's table",
        sources=("CSER", "FD-BIOS"),
        enforced_by=f"{_SET}; `mmio_gib` below the table is refused in the file, a template that boots by BIOS, or is "
        f"of a "
        "32-bit system, with the plan",
        of_source=by_source.check_guest_width,
    ),
    Rule(
        id="secure-boot-off",
        number=3,
        severity=_WARNING,
        summary="secure boot is off, since guest drivers may come as modules that nobody signed",
        sources=("OCP",),
        enforced_by=_SET,
    ),
    Rule(
        id="hardware-version",
        number=4,
        severity=_ERROR,
        summary="PCI functions need virtual hardware 17, vendor device groups 20",
        sources=("FD-DDP", "VMOP", "FD-TOPO8", "LATENCY"),
        versions="virtual hardware 20 from vSphere 8.0 on",
        enforced_by=f"VMs are upgraded as far as needed; {_REFUSED} when it asks for less; {_PASSED_OVER}",
        of_node=by_spec.hardware_of_groups,
    ),
    Rule(
        id="several-vgpus",
        number=5,
        severity=_ERROR,
        summary="several vGPUs in one VM are whole GPUs on vSphere 7, and any C-series profile from 8.0 on",
        sources=("CSER",),
        versions="7.0, and from 8.0 on",
        enforced_by=_PASSED_OVER,
    ),
    Rule(
        id="one-kind-of-vgpu",
        number=6,
        severity=_ERROR,
        summary="all vGPUs of a VM are of one board type and one series",
        sources=("CSER",),
        enforced_by="a node has one profile, and a file that gives it several is refused",
    ),
    Rule(
        id="vgpus-per-vm",
        number=7,
        severity=_ERROR,
        summary="a VM has 4 vGPUs at most on vSphere 7, and 8 on vSphere 8, where the hosts do not tell another number",
        sources=("FD-LIM", "FD-MULTI", "VMIOP"),
        versions="7.0: 4; from 8.0 on: 8, or what the hosts tell",
        enforced_by=f"hosts are asked when a node wants more; {_PASSED_OVER}",
    ),
    Rule(
        id="functions-per-vm",
        number=8,
        severity=_ERROR,
        summary="a VM has 16 passthrough PCI devices at most on vSphere 7.0, 32 on 8.0, 64 on 8.0 U1, 128 on 8.0 U2; "
        "more "
        "than 16 want virtual hardware 20",
        sources=("FD-LIM", "BCOM-309986", "FD-MULTI"),
        versions="7.0: 16; 8.0: 32; 8.0 U1: 64; from 8.0 U2 on: 128",
        enforced_by=f"VMs are upgraded as far as needed; {_REFUSED} when it asks for less; {_PASSED_OVER}",
        of_node=by_spec.hardware_of_functions,
        of_host=by_host.many_functions,
    ),
    Rule(
        id="nvlink-full-gpus",
        number=9,
        severity=_ERROR,
        summary="NVLink joins full, time-sliced C-series vGPUs of a board that has it, in one Linux VM, and never MIG",
        sources=("MULTI", "CSER", "P2P"),
        enforced_by=f"{_REFUSED}; a template of another system with the plan",
        of_source=by_source.no_linux_for_link,
    ),
    Rule(
        id="no-pcie-peers",
        number=10,
        severity=_WARNING,
        summary="vGPUs do not exchange data over PCIe with each other; only NVLink joins them",
        sources=("MULTI", "P2P"),
        enforced_by="reported with the plan when a node has several vGPUs that are not joined",
        of_node=by_spec.peer_to_peer,
    ),
    Rule(
        id="nvswitch",
        number=11,
        severity=_ERROR,
        summary="an NVSwitch joins the full vGPUs of an HGX board in one Linux VM",
        sources=("CSER", "NVSW"),
        versions="Ampere: from ESXi 8.0 U1 on; Hopper: from 8.0 U2 on",
        enforced_by=f"{_REFUSED} for boards without one, a template of another system with the plan; {_PASSED_OVER}",
        of_source=by_source.no_linux_for_switch,
        of_host=by_host.old_for_nvswitch,
    ),
    Rule(
        id="nvlink-without-unified-memory",
        number=12,
        severity=_WARNING,
        summary="unified memory takes NVLink away between the A100 of a VM: `enable_uvm` stays off",
        sources=("P2P",),
        enforced_by="vsml does not switch it on; reported with the plan when `extra_config` does",
        of_node=by_spec.unified_memory,
    ),
    Rule(
        id="fixed-on-large-servers",
        number=13,
        severity=_ERROR,
        summary="in servers of more than four GPUs a VM gets several only by fixed DirectPath, not by dynamic",
        sources=("MULTI",),
        enforced_by=_PASSED_OVER,
        of_host=by_host.many_by_dynamic,
    ),
    Rule(
        id="gpudirect-rdma",
        number=14,
        severity=_ERROR,
        summary="GPUDirect RDMA is for C-series from Ampere on, in Linux VMs, with ConnectX-5 or newer, or BlueField",
        sources=("CSER", "GPUDIRECT"),
        enforced_by=f"{_REFUSED}, a template of another system with the plan; `peer_to_peer = false` does without "
        f"GPUDirect",
        of_source=by_source.no_linux_for_gpudirect,
        of_node=by_spec.no_gpudirect,
    ),
    Rule(
        id="gpudirect-storage",
        number=15,
        severity=_ERROR,
        summary="GPUDirect Storage is not for Ampere, and wants open kernel modules and Ubuntu 20.04 or 22.04",
        sources=("CSER",),
        enforced_by="vsml does not set it up",
    ),
    Rule(
        id="gpu-near-nic",
        number=16,
        severity=_ERROR,
        summary="for GPUDirect RDMA, GPU and NIC sit under one root complex or PCIe switch",
        sources=("FD-MULTI", "GPUOP"),
        enforced_by="the nearest pair of a host is taken, and one that is farther apart is reported with the plan",
    ),
    Rule(
        id="ats-needs-esxi",
        number=17,
        severity=_WARNING,
        summary="ATS, which GPUDirect RDMA in VMs wants, came with ESXi 7.0 U2, there with Intel CPUs only",
        sources=("FD-MULTI", "LAMW"),
        versions="from 7.0 U2 on; 7.0 U2 with Intel CPUs",
        enforced_by="reported with the plan; `vsml enable-ats` refuses such hosts",
        of_placement=by_placement.no_ats,
    ),
    Rule(
        id="pvrdma-one-switch",
        number=18,
        severity=_ERROR,
        summary="PVRDMA wants all VMs on one distributed switch, virtual hardware 13, 64-bit Linux, and a NIC as its "
        "only "
        "uplink",
        sources=("PVRDMA",),
        versions="from 6.5 on",
        enforced_by=f"nodes that are not on one distributed switch, and a template of another system, are refused; "
        f"other "
        f"uplinks of a host, and a VMkernel adapter that is elsewhere, are reported with the plan; {_PASSED_OVER}",
        of_source=by_source.no_linux_for_pvrdma,
    ),
    Rule(
        id="pvrdma-host-memory",
        number=19,
        severity=_WARNING,
        summary="PVRDMA carries the memory of the VM; no document found mentions GPUDirect RDMA over it",
        sources=("PVRDMA",),
        enforced_by="reported with the plan",
    ),
    Rule(
        id="nvlink-of-single-gpus",
        number=20,
        severity=_INFO,
        summary="GPUs that are given one by one or in parts do not use their NVLink",
        sources=("FD-TOPO",),
        enforced_by="reported by `vsml check`",
        of_node=by_spec.link_unused,
    ),
    Rule(
        id="mig-or-time-sliced",
        number=21,
        severity=_ERROR,
        summary="a GPU gives MIG-backed or time-sliced vGPUs, never both; time-sliced ones of one size, or of mixed "
        "sizes",
        sources=("FD-FRAC", "FD-MODES"),
        versions="mixed sizes from 8.0 U3 on",
        enforced_by="GPUs in another mode, or with vGPUs of another size, are passed over with the reason; a GPU that "
        "nobody "
        "uses is put into MIG mode when `[host_config]` has the kind `mig`",
    ),
    Rule(
        id="what-keeps-vms-still",
        number=22,
        severity=_INFO,
        summary="fixed DirectPath rules out DRS, vMotion, snapshots and HA on other hosts, dynamic DirectPath vMotion",
        sources=("FD-DDP",),
        enforced_by="reported by `vsml check`",
        of_node=by_spec.no_migration,
    ),
    Rule(
        id="switches-that-stop-motion",
        number=23,
        severity=_INFO,
        summary="unified memory, CUDA debuggers and profilers keep a VM with a vGPU from vMotion and suspend",
        sources=("CSER",),
        enforced_by="reported by `vsml check` when `extra_config` switches one on",
        of_node=by_spec.no_motion,
    ),
    Rule(
        id="no-cpu-hot-add",
        number=24,
        severity=_WARNING,
        summary="CPU hot-add is off, since it hides NUMA from the guest",
        sources=("NUMA",),
        enforced_by=f"{_SET}; a file that switches it on by `extra_config` is refused",
    ),
    Rule(
        id="latency-reservation",
        number=25,
        severity=_ERROR,
        summary="latency sensitivity `high` wants all memory and all CPU reserved",
        sources=("LATENCY",),
        enforced_by=_SET,
    ),
    Rule(
        id="new-mig-profiles",
        number=26,
        severity=_ERROR,
        summary="MIG profiles of one slice with a quarter of the memory, and those with media engines (ME), want 8.0 "
        "U3",
        sources=("CSER",),
        versions="from 8.0 U3 on",
        enforced_by=_PASSED_OVER,
    ),
    Rule(
        id="sxm-on-7-and-8",
        number=27,
        severity=_INFO,
        summary="several vGPUs of SXM boards in a VM are documented for vSphere 7 and 8",
        sources=("CSER",),
        versions="7.0 and 8.0",
        enforced_by="reported with the plan elsewhere",
        of_placement=by_placement.sxm_elsewhere,
    ),
    Rule(
        id="alike-in-a-job",
        number=28,
        severity=_WARNING,
        summary="the VMs of one job have the same profile, since every step waits for the slowest rank (our reasoning)",
        sources=(),
        enforced_by="reported with the plan; driver and image are those of the cluster's one set of playbooks",
        of_cluster=by_spec.check_uneven_gpus,
    ),
    Rule(
        id="host-graphics",
        number=29,
        severity=_ERROR,
        summary="a host gives vGPUs when its graphics type is Shared Direct",
        sources=("FD-VGPU",),
        enforced_by=f"{_PASSED_OVER}; made so when `[host_config]` has the kind `graphics`",
    ),
    Rule(
        id="host-functions",
        number=30,
        severity=_ERROR,
        summary="a port hands out as many virtual functions as its driver was loaded with, 127 at most",
        sources=("NMLX5",),
        enforced_by=f"{_PASSED_OVER}; made so when `[host_config]` has the kind `sriov`",
    ),
    Rule(
        id="host-passthrough",
        number=31,
        severity=_ERROR,
        summary="a GPU or a port is handed through when passthrough is switched on for it on the host",
        sources=("PASSTHRU",),
        enforced_by=f"{_PASSED_OVER}; made so when `[host_config]` has the kind `passthrough`",
    ),
    Rule(
        id="host-pvrdma",
        number=32,
        severity=_ERROR,
        summary="for PVRDMA a host has a VMkernel adapter tagged for it, and a firewall that lets it through",
        sources=("PVRDMA",),
        versions="from 6.5 on",
        enforced_by=f"{_PASSED_OVER}; made so when `[host_config]` has the kind `pvrdma`",
    ),
    Rule(
        id="nvlink-group-sizes",
        number=33,
        severity=_ERROR,
        summary="NVLink joins 2, 4 or 8 GPUs of a VM: of so many vSphere makes a device group",
        sources=("FD-MULTI", "FD-TOPO"),
        versions="from 8.0 on",
        enforced_by=_REFUSED,
    ),
    Rule(
        id="device-groups-from-8",
        number=34,
        severity=_ERROR,
        summary="vendor device groups, of a GPU with its NIC or of GPUs joined by NVLink, came with vSphere 8.0",
        sources=("GROUPS",),
        versions="from 8.0 on",
        enforced_by=f'{_PASSED_OVER}; with `nic.kind = "auto"` GPU and NIC are paired by vsml instead',
    ),
    Rule(
        id="no-cpu-affinity",
        number=35,
        severity=_WARNING,
        summary="CPU or memory affinity takes a VM out of NUMA scheduling, affinity to a NUMA node does not",
        sources=("NUMA",),
        enforced_by="VMs are bound by NUMA node; reported with the plan when `extra_config` sets another affinity",
        of_node=by_spec.no_numa_scheduling,
    ),
    Rule(
        id="esxi-chooses-gpus",
        number=36,
        severity=_INFO,
        summary="ESXi chooses the GPU of each vGPU: the one with the fewest VMs by the policy `performance`, one "
        "until it "
        "is full by `consolidation`; those of one VM may come from several GPUs",
        sources=("ASSIGN", "MULTI-VGPU"),
        enforced_by="GPUs are expected by the policy, of one NUMA node where it has enough free; reported with the "
        "plan when a node has "
        "several vGPUs, and what each got is read back",
        of_placement=by_placement.gpus_by_esxi,
    ),
    Rule(
        id="nccl-memory-pools",
        number=37,
        severity=_INFO,
        summary="NCCL makes CUDA memory pools since 2.23.4, and a vGPU without unified memory was seen to have none",
        sources=("NCCL-2101", "NCCL", "UVM"),
        enforced_by="vsml does not switch unified memory on, which rules out vMotion and NVLink of A100; reported by "
        "`vsml check`",
        of_node=by_spec.memory_pools,
    ),
    Rule(
        id="profiles-of-the-hosts",
        number=38,
        severity=_WARNING,
        summary="the hosts say which vGPU profiles there are; boards newer than NVIDIA's tables are carried",
        sources=("PROFILES", "CSER"),
        enforced_by="`vsml check` and the plan name a profile that is not in NVIDIA's tables; its size is as the host "
        "has it, and how many a GPU holds is worked out of its other profiles",
        of_node=by_spec.unknown_profile,
    ),
    Rule(
        id="bridged-pairs",
        number=39,
        severity=_WARNING,
        summary="NVLink bridges join PCIe GPUs in pairs: four of them in a VM are two pairs",
        sources=("FD-TOPO", "FD-MULTI"),
        enforced_by="`vsml check` and the plan name it for GPUs that are handed through whole",
        of_node=by_spec.bridged_pairs,
    ),
)
BY_ID = {rule.id: rule for rule in RULES}


def find(text: str) -> Rule:
    """Return a rule by its id or number; ConfigError `rule.unknown` when there is none."""
    wanted = text.strip().casefold()
    for rule in RULES:
        if wanted in {rule.id, str(rule.number)}:
            return rule
    near = nearest_name(wanted, BY_ID)
    raise ConfigError(
        f"there is no rule `{text}`",
        code="rule.unknown",
        target=text,
        hint=f"did you mean `{near}`?" if near else "`vsml rules` lists them",
    )
