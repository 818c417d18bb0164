"""Each rule of the table, broken where it is kept: in a file, on a host, on a placement, or in how a VM is built."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.fakes.pictures import quad_8u3, r750xa, seed_7u2, settings
from tests.fakes.requirements import cluster, node, nodes, seed_cluster
from tests.unit.config.texts import ONE_NODE
from tests.unit.core.sites import changed, one_host, one_node, planned, refused
from vsphere_ml import shipped
from vsphere_ml.config.load import load_text
from vsphere_ml.core.catalog.profiles import parse
from vsphere_ml.core.diagnostics import Severity
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.model.device_kinds import GpuKind, NicKind
from vsphere_ml.core.model.inventory import DirectPathGpu, Host, Inventory, Pvrdma, VgpuProfile
from vsphere_ml.core.model.spec import GpuRequest, Latency, NicRequest
from vsphere_ml.core.nodes.requirements import requirements_of
from vsphere_ml.core.placement.resolve import resolve
from vsphere_ml.core.placement.solve import solve
from vsphere_ml.core.plan.describe import drift_of
from vsphere_ml.core.plan.diff import diff
from vsphere_ml.core.rules import by_host, check
from vsphere_ml.core.rules.sources import SOURCES
from vsphere_ml.core.rules.table import RULES, find

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.golden import Golden
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.plan.plan import Plan

HALVES = GpuRequest(profile="A100-20C", count=2)
DYNAMIC = GpuRequest(kind=GpuKind.DYNAMIC, device="A100", count=2)
WHOLE = GpuRequest(kind=GpuKind.PASSTHROUGH, device="A100")
PVRDMA = NicRequest(kind=NicKind.PVRDMA, port_group="roce")
UVM = {"pciPassthru0.cfg.enable_uvm": "1"}


def file(gpu: str, more: str = "") -> str:
    """Return the mistakes that are told of a file whose node has this GPU, and more keys."""
    text = ONE_NODE.replace('gpu = { profile = "A100-40C" }', f"gpu = {{ {gpu} }}") + more
    with pytest.raises(ConfigError) as caught:
        load_text(text)
    return "\n".join(f"{each.target}: {each.message} ({each.hint})" for each in caught.value.problems)


def told(spec: ClusterSpec) -> str:
    """Return what `vsml check` tells of a file that is not refused."""
    return "\n".join(f"{each.severity}: {each.code}: {each.message}" for each in check.of_file(spec))


def on_host(spec: ClusterSpec, **knobs: object) -> str:
    """Return the reasons against the only host."""
    return refused(spec, one_host(**knobs)).details[0]


def noted(spec: ClusterSpec, **knobs: object) -> str:
    """Return the notes of the plan for the only host."""
    return "\n".join(planned(spec, one_host(**knobs)).notes)


def passthrough_gpus(count: int) -> dict[str, object]:
    """Return what makes a host one of so many A100 that are passed through."""
    gpus = tuple(
        DirectPathGpu(
            address=type(r750xa(1).gpus[0].address)(f"0000:{16 + at:02x}:00.0"),
            vendor=0x10DE,
            device=0x20F1,
            name="GA100",
            active=True,
            label="",
            system_id="system",
        )
        for at in range(count)
    )
    return {"gpus": (), "groups": (), "profiles": (), "passthrough_gpus": gpus}


def existing(**knobs: object) -> str:
    """Return what is to be corrected on a node whose VM was changed behind our back."""
    plan = _plan_for(changed(one_node(), "node-1", **knobs))
    return "\n".join(missing for change in plan.changes for missing in drift_of(change))


def _plan_for(site: Inventory) -> Plan:
    return diff(cluster(1), solve(cluster(1), site), site)


def asked_of(host: Host, **knobs: object) -> str:
    """Return what the table's own rules have against a host, whatever else speaks against it."""
    spec = cluster((node("node-1", **knobs),))
    asked = requirements_of(spec.nodes[0], resolve(spec, one_host()))
    return "\n".join(map(str, check.of_host(host, asked)))


MIG_HOST = {
    "groups": (),
    "profiles": (VgpuProfile(name="grid_a100-1-10c"), VgpuProfile(name="grid_a100-1-5c")),
}


def _no_switch() -> str:
    site = one_host(pvrdma=Pvrdma(vmknic="vmk1", firewall=True))
    off = replace(site, networks=tuple(replace(each, switch=None) for each in site.networks))
    return str(refused(cluster(nodes(1, nic=PVRDMA)), off))


def _sxm() -> str:
    site = one_host(groups=())
    placement = solve(cluster(nodes(1, gpu=GpuRequest(profile="A100-40C", count=2))), site)
    (node_placement,) = placement.placements
    of_sxm = replace(placement, placements=(replace(node_placement, profile="grid_a100x-40c"),))
    on_nine = replace(site, hosts=(replace(site.hosts[0], version="9.0.0"),))
    return "\n".join(each.message for each in check.check_placements(of_sxm, on_nine))


def _unpassed() -> dict[str, object]:
    knobs = passthrough_gpus(1)
    gpus = knobs["passthrough_gpus"]
    assert isinstance(gpus, tuple)
    return {**knobs, "passthrough_gpus": tuple(replace(gpu, active=False) for gpu in gpus)}


# For each rule: what breaks it, and words of what is said then.
BREAKS: dict[str, tuple[Callable[[], str], str]] = {
    "memory-reserved": (lambda: existing(memory_locked=False), "memory reservation not locked → locked"),
    "efi-and-mmio": (
        lambda: file('profile = "A100-40C"', "mmio_gib = 64\n"),
        "64 GiB is less than the 128 GiB that 1 × A100-40C needs",
    ),
    "secure-boot-off": (lambda: existing(secure_boot=True), "secure boot on → off"),
    "hardware-version": (
        lambda: file('kind = "nvlink", profile = "A100-40C", count = 2', "hardware_version = 19\n"),
        "hardware_version: device groups need virtual hardware 20, and 19 is asked for (vsml rules why hard",
    ),
    "several-vgpus": (
        lambda: on_host(cluster(nodes(1, gpu=HALVES)), version="7.0.3", groups=()),
        "ESXi 7.0.3 gives a VM several vGPUs only of whole GPUs",
    ),
    "one-kind-of-vgpu": (lambda: file('profile = ["A40-48C", "A16-16C"]'), "gpu.profile: expected"),
    "vgpus-per-vm": (
        lambda: on_host(cluster(nodes(1, gpu=GpuRequest(profile="A100-40C", count=9)))),
        "gives a VM 8 vGPUs at most, 9 wanted",
    ),
    "functions-per-vm": (
        lambda: asked_of(
            replace(r750xa(1), version="7.0.3"), gpu=GpuRequest(kind=GpuKind.PASSTHROUGH, device="A100", count=16)
        ),
        "ESXi 7.0.3 gives a VM 16 PCI functions at most, 17 needed",
    ),
    "nvlink-full-gpus": (
        lambda: file('kind = "nvlink", profile = "A100-20C", count = 2'),
        "is a part of a GPU, and NVLink joins whole ones",
    ),
    "no-pcie-peers": (
        lambda: noted(cluster(nodes(1, gpu=GpuRequest(profile="A100-40C", count=2)))),
        "node-1: its 2 vGPUs exchange data through the VM's memory, not with each other (rule no-pcie-peers)",
    ),
    "nvswitch": (
        lambda: asked_of(
            replace(r750xa(1), version="8.0.0"), gpu=GpuRequest(kind=GpuKind.NVLINK, profile="A100X-40C", count=8)
        ),
        "ESXi 8.0.0 joins no A100 SXM4 40GB by NVSwitch, 8.0.1 needed",
    ),
    "nvlink-without-unified-memory": (
        lambda: told(
            cluster(nodes(1, gpu=GpuRequest(kind=GpuKind.NVLINK, profile="A100-40C", count=2), extra_config=UVM))
        ),
        "warning: nvlink-without-unified-memory: unified memory is on",
    ),
    "fixed-on-large-servers": (
        lambda: on_host(cluster(nodes(1, gpu=DYNAMIC)), **passthrough_gpus(5)),
        "has 5 GPUs, and in a server of more than 4 a VM gets several of them only by gpu.kind",
    ),
    "gpudirect-rdma": (
        lambda: file('profile = "A100-40C"', 'nic = { model = "ConnectX-4 Lx" }\n'),
        "nic.model: GPUDirect RDMA is documented for ConnectX-5 and newer and for BlueField, not for ConnectX-4 Lx",
    ),
    "gpu-near-nic": (
        lambda: noted(
            cluster(nodes(1, nic=NicRequest(kind=NicKind.SRIOV, port_group="roce"))),
            nics=r750xa(1).nics[1:],
            gpus=r750xa(1).gpus[:1],
        ),
        "GPUDirect RDMA wants them under one root complex",
    ),
    "ats-needs-esxi": (
        lambda: noted(cluster(1), version="7.0.1", groups=()),
        "node-1: esx-01.lab.test: ESXi 7.0.1 has no kernel setting atsSupport; it came with 7.0 U2",
    ),
    "pvrdma-one-switch": (_no_switch, "PVRDMA needs a distributed switch, and port group `roce` is on none"),
    "pvrdma-host-memory": (
        lambda: noted(cluster(nodes(1, nic=PVRDMA)), pvrdma=Pvrdma(vmknic="vmk1", firewall=True)),
        "GPUDirect RDMA through it is documented nowhere",
    ),
    "nvlink-of-single-gpus": (
        lambda: told(cluster(nodes(1, gpu=GpuRequest(profile="A100-20C", count=2)))),
        "info: nvlink-of-single-gpus: its GPUs are given in parts",
    ),
    "mig-or-time-sliced": (
        lambda: on_host(
            cluster(nodes(1)), gpus=tuple(replace(gpu, vgpu_mode="multiInstanceGpu") for gpu in r750xa(1).gpus)
        ),
        "is in MIG mode",
    ),
    "what-keeps-vms-still": (
        lambda: told(cluster(nodes(1, gpu=GpuRequest(kind=GpuKind.PASSTHROUGH, device="A100")))),
        "info: what-keeps-vms-still: GPUs by fixed DirectPath: no DRS, no vMotion",
    ),
    "switches-that-stop-motion": (
        lambda: told(cluster(nodes(1, extra_config={"pciPassthru1.cfg.enable_profiling": "1"}))),
        "info: switches-that-stop-motion: enable_profiling: the VM can neither be moved by vMotion nor suspended",
    ),
    "nccl-memory-pools": (
        lambda: told(cluster(nodes(1))),
        "info: nccl-memory-pools: NCCL 2.23 and newer may not start without unified memory",
    ),
    "no-cpu-hot-add": (lambda: existing(cpu_hot_add=True), "CPU hot-add on → off"),
    "no-cpu-affinity": (
        lambda: told(cluster(nodes(1, extra_config={"sched.cpu.affinity": "0,1,2"}))),
        "warning: no-cpu-affinity: sched.cpu.affinity takes the VM out of NUMA scheduling",
    ),
    "latency-reservation": (
        lambda: str(solve(cluster(nodes(1, latency=Latency.HIGH)), one_host()).placements[0].target),
        "cpu_reservation_mhz=41600",
    ),
    "new-mig-profiles": (
        lambda: on_host(
            cluster(nodes(1, gpu=GpuRequest(kind=GpuKind.MIG, profile="A100-1-10C"))), version="8.0.2", **MIG_HOST
        ),
        "ESXi 8.0.2 has no A100-1-10C, 8.0.3 needed",
    ),
    "sxm-on-7-and-8": (_sxm, "several vGPUs of an SXM board are documented for ESXi 7 and 8, not for 9.0.0"),
    "nvlink-group-sizes": (
        lambda: file('kind = "nvlink", profile = "A100X-40C", count = 3'),
        "NVLink joins 2, 4, 8 GPUs of a VM, not 3",
    ),
    "device-groups-from-8": (
        lambda: refused(
            seed_cluster(nodes(1, nic=NicRequest(kind=NicKind.DEVICE_GROUP, port_group="roce"))), seed_7u2()
        ).details[0],
        "vCenter API 7.0.2.0 has no vendor device groups",
    ),
    "esxi-chooses-gpus": (
        lambda: noted(cluster(nodes(1, gpu=HALVES)), groups=(), assignment_policy="performance"),
        "by the host's assignment policy `performance`: they may be others, and farther from the NIC, than those shown",
    ),
    "host-graphics": (
        lambda: on_host(cluster(1), gpus=tuple(replace(gpu, graphics_type="shared") for gpu in r750xa(1).gpus)),
        "has graphics type shared, sharedDirect needed",
    ),
    "host-functions": (
        lambda: on_host(
            cluster(nodes(1, nic=NicRequest(kind=NicKind.SRIOV, port_group="roce"))),
            nics=tuple(replace(nic, vfs=0, sriov_enabled=False) for nic in r750xa(1).nics),
        ),
        "0000:3d:00.0 has SR-IOV off",
    ),
    "host-passthrough": (
        lambda: on_host(cluster(nodes(1, gpu=WHOLE)), **_unpassed()),
        "is not enabled for passthrough",
    ),
    "host-pvrdma": (
        lambda: on_host(cluster(nodes(1, nic=PVRDMA)), pvrdma=Pvrdma(vmknic="", firewall=True)),
        "no VMkernel adapter is tagged for PVRDMA",
    ),
    "bridged-pairs": (
        lambda: told(cluster(nodes(1, gpu=GpuRequest(kind=GpuKind.PASSTHROUGH, device="A100", count=4)))),
        "4 A100 PCIe 40GB are 2 pairs",
    ),
    "profiles-of-the-hosts": (
        lambda: told(cluster(nodes(1, gpu=GpuRequest(profile="B9000-192C")))),
        "B9000 is a board",
    ),
    "alike-in-a-job": (
        lambda: noted(cluster((*nodes(1), node("node-9", gpu=HALVES))), groups=()),
        "a job over all nodes runs at the pace of the slowest GPU: node-1: 1 × A100-40C; node-9: 2 × A100-20C",
    ),
}


@pytest.mark.parametrize("rule", BREAKS)
def test_who_breaks_a_rule_is_told(rule: str) -> None:
    broken, words = BREAKS[rule]
    assert words in broken()


# Kept without a word of refusal: set on every VM, or of the file's own shape.
_SILENT = {"latency-reservation", "one-kind-of-vgpu", "sxm-on-7-and-8"}


@pytest.mark.parametrize("rule", sorted(BREAKS.keys() - _SILENT))
def test_what_is_told_names_the_rule(rule: str) -> None:
    broken, _ = BREAKS[rule]
    assert rule in broken()


def test_affinity_to_all_is_none() -> None:
    assert "affinity" not in told(cluster(nodes(1, extra_config={"sched.cpu.affinity": "all"})))


@pytest.mark.parametrize(
    ("gpu", "knobs"),
    [
        (GpuRequest(profile="A100-40C"), {}),
        (GpuRequest(profile="A100-40C", count=2), {"gpus": r750xa(1).gpus[:2]}),
        (GpuRequest(kind=GpuKind.PASSTHROUGH, device="A100", count=2), passthrough_gpus(4)),
    ],
)
def test_where_esxi_has_no_choice_none_is_told(gpu: GpuRequest, knobs: dict[str, object]) -> None:
    assert "ESXi's choice" not in noted(cluster(nodes(1, gpu=gpu)), **{"groups": (), **knobs})


def test_every_rule_is_broken_here() -> None:
    # GPUDirect Storage: vsml offers no way to ask for it, which the next test holds it to.
    assert {rule.id for rule in RULES} == {*BREAKS, "gpudirect-storage"}


def test_nothing_that_ships_sets_up_gpudirect_storage() -> None:
    texts = [each.read_text() for folder in (shipped.playbooks(), shipped.templates()) for each in folder.rglob("*.*")]
    assert texts
    assert not [text for text in texts if "nvidia-fs" in text or "nvidia-gds" in text or "cufile" in text]


def test_what_is_legal_is_told_nothing_but_what_is_good_to_know() -> None:
    spec = cluster(4)
    assert {each.severity for each in check.of_file(spec)} == {Severity.INFO}
    assert not [note for note in planned(spec, quad_8u3()).notes if "(rule " in note]


@pytest.mark.parametrize(("device", "count"), [("A100", 2), ("A100X", 4), ("H200", 4), ("L40S", 4), ("10de:ffff", 4)])
def test_only_boards_that_bridges_join_in_pairs_are_said_to_be_pairs(device: str, count: int) -> None:
    spec = cluster(nodes(1, gpu=GpuRequest(kind=GpuKind.PASSTHROUGH, device=device, count=count)))
    assert "bridged-pairs" not in {each.code for each in check.of_file(spec)}


def test_memory_pools_are_spoken_of_only_where_a_vgpu_lacks_unified_memory() -> None:
    for known in (cluster(nodes(1, extra_config=UVM)), cluster(nodes(1, gpu=WHOLE))):
        assert "nccl-memory-pools" not in {each.code for each in check.of_file(known)}


def test_nodes_that_break_a_rule_alike_are_told_together() -> None:
    [diagnostic] = [each for each in check.of_file(cluster(nodes(3, gpu=HALVES))) if each.code == "no-pcie-peers"]
    assert diagnostic.details == ("node-1", "node-2", "node-3")


def test_rows_are_complete_and_their_sources_exist() -> None:
    assert [rule.number for rule in RULES] == list(range(1, 40))
    assert len({rule.id for rule in RULES}) == len(RULES)
    assert all(rule.summary and rule.enforced_by for rule in RULES)
    assert {key for rule in RULES for key in rule.sources} == set(SOURCES)
    assert not [rule.id for rule in RULES if "unconfirmed" in rule.summary]


def test_a_rule_is_found_by_id_and_by_number_and_a_near_one_is_meant(golden: Golden) -> None:
    assert find("7") is find("VGPUs-per-VM ")
    with pytest.raises(ConfigError) as caught:
        find("vgpu-per-vm")
    assert caught.value.code == "rule.unknown"
    golden(caught.value)
    with pytest.raises(ConfigError):
        find("99")


SIXTEEN = GpuRequest(kind=GpuKind.PASSTHROUGH, device="A100", count=16)


def test_more_than_sixteen_functions_want_newer_hardware_of_the_vm(golden: Golden) -> None:
    seventeen = one(gpu=SIXTEEN)
    alone = one(gpu=SIXTEEN, nic=NicRequest(kind=NicKind.NONE))
    two_nics = one(gpu=replace(SIXTEEN, count=15), nic=NicRequest(count=2))
    specs = (seventeen, alone, two_nics)
    versions = [requirements_of(spec.nodes[0], resolve(spec, one_host())).hardware_version for spec in specs]
    assert versions == [20, 19, 20]  # 19 is the template's own
    asked = file('kind = "passthrough", device = "A100", count = 16', "hardware_version = 19\n")
    golden(asked)


LINKED, SWITCHED = (
    GpuRequest(kind=GpuKind.NVLINK, profile="A100-40C", count=2),
    GpuRequest(kind=GpuKind.NVLINK, profile="A100X-40C", count=4),
)


def of_guest(guest: str, **knobs: object) -> list[str]:
    """Return the rules that clones of a template of this guest break."""
    site = quad_8u3()
    source = next(vm for vm in site.vms if vm.template)
    return [each.code for each in check.of_source(replace(source, settings=settings(guest_id=guest)), one(**knobs))]


def one(**knobs: object) -> ClusterSpec:
    return cluster((node("node-1", **knobs),))


@pytest.mark.parametrize(
    ("guest", "knobs", "rules"),
    [
        ("ubuntu64Guest", {"gpu": LINKED}, []),
        ("rhel9_64Guest", {"gpu": SWITCHED}, []),
        ("otherGuest64", {"gpu": LINKED, "nic": PVRDMA}, []),
        ("", {"gpu": LINKED}, []),
        ("ubuntuGuest", {}, ["efi-and-mmio"]),
        ("ubuntuGuest", {"gpu": GpuRequest(kind=GpuKind.PASSTHROUGH, device="A100")}, []),
        ("windows2022srvNext_64Guest", {}, ["gpudirect-rdma"]),
        ("windows2022srvNext_64Guest", {"peer_to_peer": False}, []),
        ("windows2022srvNext_64Guest", {"gpu": LINKED, "peer_to_peer": False}, ["nvlink-full-gpus"]),
        ("freebsd14_64Guest", {"gpu": SWITCHED, "peer_to_peer": False}, ["nvswitch"]),
        ("windows2022srvNext_64Guest", {"nic": PVRDMA}, ["pvrdma-one-switch"]),
        ("debian12Guest", {"nic": PVRDMA}, ["efi-and-mmio", "pvrdma-one-switch"]),
    ],
)
def test_the_sources_system_decides_too(guest: str, knobs: dict[str, object], rules: list[str]) -> None:
    assert of_guest(guest, **knobs) == rules


def test_a_template_of_a_system_that_will_not_do_is_refused_with_its_rules(golden: Golden) -> None:
    site = quad_8u3()
    windows = tuple(
        replace(vm, settings=settings(guest_id="windows2022srvNext_64Guest")) if vm.template else vm for vm in site.vms
    )
    error = refused(one(gpu=LINKED), replace(site, vms=windows))
    assert error.code == "source.guest"
    assert error.hint is not None
    golden(error)
    assert [each.rpartition(" (rule ")[2] for each in error.details] == ["nvlink-full-gpus)", "gpudirect-rdma)"]


@pytest.mark.parametrize(
    ("version", "most"), [("7.0.3", 16), ("8.0.0", 32), ("8.0.1", 64), ("8.0.2", 128), ("9.0.0", 128), ("6.7.0", 0)]
)
def test_how_many_functions_a_vm_may_have_depends_on_esxi(version: str, most: int) -> None:
    spec = cluster(
        (node("node-1", gpu=GpuRequest(kind=GpuKind.PASSTHROUGH, device="A100"), nic=NicRequest(kind=NicKind.NONE)),)
    )
    asked = replace(requirements_of(spec.nodes[0], resolve(spec, one_host())), gpus=most)
    host = replace(r750xa(1), version=version)
    assert not list(by_host.many_functions(host, asked))
    assert list(by_host.many_functions(host, replace(asked, gpus=most + 1)))


def test_a_profile_of_hopper_wants_a_later_esxi_for_its_switch() -> None:
    hopper = GpuRequest(kind=GpuKind.NVLINK, profile="H100XM-80C", count=8)
    assert "8.0.2 needed" in asked_of(replace(r750xa(1), version="8.0.1"), gpu=hopper)
    assert asked_of(replace(r750xa(1), version="8.0.2"), gpu=hopper) == ""
    assert parse("H100XM-80C").is_full
