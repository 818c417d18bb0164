"""What a guest's programs print, and what it means."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.guest.cluster import NODE_1, facts
from tests.unit.guest.recorder import Recorder
from vsphere_ml.core.diagnostics import Severity
from vsphere_ml.core.errors import GuestError
from vsphere_ml.core.model.device_kinds import NicKind
from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.guest.facts import judge, wanted
from vsphere_ml.guest.facts.verify import Evidence, verify
from vsphere_ml.guest.playbooks.fields import FileSource
from vsphere_ml.guest.playbooks.playbook import load_text
from vsphere_ml.guest.steps.gpu import driver
from vsphere_ml.guest.steps.gpu.driver import NvidiaDriver
from vsphere_ml.guest.steps.gpu.licence import VgpuLicence
from vsphere_ml.guest.steps.network.roce import NetplanRoce
from vsphere_ml.guest.steps.system.dataset import Dataset

if TYPE_CHECKING:
    from tests.golden import Golden
    from vsphere_ml.core.model.guest import GuestFacts, Playbook

OK, WARNING, FAILED, UNKNOWN = Severity.OK, Severity.WARNING, Severity.ERROR, Severity.UNKNOWN
RECORDED = Path(__file__).parents[3] / "cases" / "nvidia"
WITHOUT_DRIVER = CommandAnswer(9, (RECORDED / "nvidia-smi-without-driver.txt").read_text())
WITHOUT_LIBRARY = CommandAnswer(12, (RECORDED / "nvidia-smi-without-library.txt").read_text())
SILENT = CommandAnswer(127, "", "sh: 1: nvidia-smi: not found\n")


def devinfo(state: str, mtu: int) -> str:
    return f"""\
hca_id:\tmlx5_0
\ttransport:\t\t\tInfiniBand (0)
\tvendor_part_id:\t\t\t4126
\tphys_port_cnt:\t\t\t1
\t\tport:\t1
\t\t\tstate:\t\t\t{state} (4)
\t\t\tmax_mtu:\t\t4096 (5)
\t\t\tactive_mtu:\t\t{mtu} (5)
\t\t\tlink_layer:\t\tEthernet
"""


def matrix(option: str) -> str:
    header = "\t\x1b[4mGPU0\tNIC0\tCPU Affinity\tNUMA Affinity\x1b[0m\n"
    return f"{header}GPU0\t X \t{option}\t0-15\t0\nNIC0\t{option}\t X \n\n  X = Self\n"


def gpus_matrix(option: str) -> str:
    header = "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    return (
        f"{header}GPU0\t X \t{option}\tPIX\t0-15\t0\tN/A\nGPU1\t{option}\t X \tPIX\t0-15\t0\tN/A\nNIC0\tPIX\tPIX\t X \n"
    )


def nvlink(answer: CommandAnswer, known: GuestFacts, *, gpus: int) -> judge.Judgement:
    return judge.nvlink(answer, replace(known, gpus=gpus))


def shown(mtu: int, address: str) -> str:
    inet = {"family": "inet", "local": address, "prefixlen": 24}
    return json.dumps([{"ifname": "ens224", "mtu": mtu, "addr_info": [inet, {"family": "inet6", "local": "fe80::1"}]}])


GID = "index 3 of mlx5_0 on ens224, RoCE v2, 192.168.0.11"
rdma_device = partial(judge.rdma_device, mtu=9000)
roce_interface = partial(judge.roce_interface, roce=NetplanRoce())
own_data = partial(judge.dataset, dataset=Dataset(path="/srv/products", contains="Ebay_train.txt"))
nfs_data = partial(judge.dataset, dataset=Dataset(path="/srv/products", nfs="nas:/products"))
CASES: dict[str, tuple[Any, CommandAnswer, Severity, str]] = {
    "a dataset on a disk": (own_data, CommandAnswer(0, "ext4  /dev/sdb1\n"), OK, "Ebay_train.txt on ext4 /dev/sdb1"),
    "a dataset without its file": (
        own_data,
        CommandAnswer(2, "ext4  /dev/sdb1\n"),
        FAILED,
        "there is no Ebay_train.txt in /srv/products",
    ),
    "a mounted dataset": (
        nfs_data,
        CommandAnswer(0, "nfs4  nas:/products\n"),
        OK,
        "/srv/products on nfs4 nas:/products",
    ),
    "a dataset that is not mounted": (
        nfs_data,
        CommandAnswer(0, "ext4  /dev/sda1\n"),
        FAILED,
        "/srv/products is not mounted from nas:/products",
    ),
    "a GPU of the profile": (judge.gpus, CommandAnswer(0, "GRID A100-40C\n"), OK, "GRID A100-40C"),
    "a GPU under its newer name": (judge.gpus, CommandAnswer(0, "NVIDIA A100-40C\n"), OK, "NVIDIA A100-40C"),
    "a GPU of another profile": (
        judge.gpus,
        CommandAnswer(0, "GRID A100-10C\n"),
        FAILED,
        "GRID A100-10C; wanted 1 × grid_a100-40c",
    ),
    "a GPU too many": (
        judge.gpus,
        CommandAnswer(0, "GRID A100-40C\nGRID A100-40C\n"),
        FAILED,
        "GRID A100-40C, GRID A100-40C; wanted 1 × grid_a100-40c",
    ),
    "no driver": (judge.gpus, SILENT, FAILED, "sh: 1: nvidia-smi: not found"),
    "a driver that is not loaded": (
        judge.gpus,
        WITHOUT_DRIVER,
        FAILED,
        WITHOUT_DRIVER.out.strip(),
    ),
    "a driver of which a library is missing": (
        judge.clocks,
        WITHOUT_LIBRARY,
        FAILED,
        WITHOUT_LIBRARY.out.splitlines()[0],
    ),
    "the same branch": (
        judge.branch,
        CommandAnswer(0, "525.105.17\n"),
        OK,
        "driver 525.105.17, vGPU manager 525.105.14",
    ),
    "the branch before": (
        judge.branch,
        CommandAnswer(0, "510.85.02\n"),
        OK,
        "driver 510.85.02, vGPU manager 525.105.14",
    ),
    "a newer branch": (
        judge.branch,
        CommandAnswer(0, "535.54.03\n"),
        FAILED,
        "driver 535.54.03, vGPU manager 525.105.14: this driver does not run under it",
    ),
    "licensed": (
        judge.licence,
        CommandAnswer(0, "  License Status : Licensed (Expiry: x)\n"),
        OK,
        "Licensed (Expiry: x)",
    ),
    "unlicensed": (judge.licence, CommandAnswer(0, "  License Status : Unlicensed\n"), FAILED, "Unlicensed"),
    "no word of a licence": (judge.licence, CommandAnswer(1, ""), UNKNOWN, "the driver says nothing of a licence"),
    "ECC on and clean": (judge.ecc, CommandAnswer(0, "Enabled, 0\n"), OK, "ECC Enabled, 0 uncorrected"),
    "ECC errors": (judge.ecc, CommandAnswer(0, "Enabled, 3\n"), FAILED, "ECC Enabled, 3 uncorrected"),
    "ECC not told": (judge.ecc, CommandAnswer(0, "[N/A], [N/A]\n"), UNKNOWN, "ECC [N/A], [N/A] uncorrected"),
    "clocks told": (judge.clocks, CommandAnswer(0, "210 MHz, 1410 MHz\n"), OK, "210 MHz of 1410 MHz"),
    "clocks not told": (judge.clocks, CommandAnswer(0, "[N/A], [N/A]\n"), UNKNOWN, "[N/A] of [N/A]"),
    "near": (judge.distance, CommandAnswer(0, matrix("PIX")), OK, "GPU0 to NIC0: PIX"),
    "far": (
        judge.distance,
        CommandAnswer(0, matrix("SYS")),
        UNKNOWN,
        "GPU0 to NIC0: SYS; this is the VM's own topology, compare it with the host's",
    ),
    "not joined": (
        partial(nvlink, gpus=2),
        CommandAnswer(0, gpus_matrix("PIX")),
        FAILED,
        "GPU0 to GPU1: PIX; wanted NVLink between all 2 GPUs",
    ),
    "joined": (partial(nvlink, gpus=2), CommandAnswer(0, gpus_matrix("NV12")), OK, "GPU0 to GPU1: NV12"),
    "too few to be joined": (
        partial(nvlink, gpus=4),
        CommandAnswer(0, gpus_matrix("NV12")),
        FAILED,
        "GPU0 to GPU1: NV12; wanted NVLink between all 4 GPUs",
    ),
    "nothing to be joined": (partial(nvlink, gpus=2), SILENT, FAILED, "sh: 1: nvidia-smi: not found"),
    "no NIC": (
        judge.distance,
        CommandAnswer(0, "\tGPU0\nGPU0\t X \n"),
        UNKNOWN,
        "nvidia-smi names no NIC beside the GPUs",
    ),
    "peermem": (
        judge.gpudirect,
        CommandAnswer(0, "5.4.0-150\nNVIDIA\nnvidia_peermem 16384 0\n"),
        OK,
        "nvidia-peermem: kernel 5.4.0-150 is older than 5.12",
    ),
    "peermem not loaded": (
        judge.gpudirect,
        CommandAnswer(1, "5.15.0-92\nNVIDIA\n"),
        FAILED,
        "nvidia-peermem is not loaded; the NVIDIA module is not the open one",
    ),
    "DMA-BUF": (
        judge.gpudirect,
        CommandAnswer(1, "5.15.0-92\nDual MIT/GPL\n"),
        OK,
        "DMA-BUF: kernel 5.15.0-92 and the open NVIDIA module allow it",
    ),
    "no module": (judge.gpudirect, CommandAnswer(1, "5.15.0-92\n"), UNKNOWN, "there is no NVIDIA kernel module"),
    "in the container": (judge.container, CommandAnswer(0, "GPU 0: GRID A100-40C (UUID: x)\n"), OK, "1 of 1 GPU"),
    "not in the container": (
        judge.container,
        CommandAnswer(1, "", "exec: nvidia-smi: not found"),
        FAILED,
        "exec: nvidia-smi: not found",
    ),
    "no container": (
        judge.container,
        CommandAnswer(1, "", "Error: No such container: vsml-worker"),
        FAILED,
        "Error: No such container: vsml-worker",
    ),
    "ATS on": (
        judge.ats,
        CommandAnswer(0, "\t\tATSCtl:\tEnable+, Smallest Translation Unit: 00\n"),
        OK,
        "ATSCtl:\tEnable+, Smallest Translation Unit: 00",
    ),
    "ATS off": (
        judge.ats,
        CommandAnswer(0, "\t\tATSCtl:\tEnable-, Smallest Translation Unit: 00\n"),
        WARNING,
        "ATSCtl:\tEnable-, Smallest Translation Unit: 00: not enabled, so GPUDirect RDMA does not reach its best",
    ),
    "no ATS": (
        judge.ats,
        CommandAnswer(1, ""),
        WARNING,
        "no NIC shows the capability: not enabled, so GPUDirect RDMA does not reach its best",
    ),
    "no lspci": (judge.ats, CommandAnswer(1, "", "sh: 1: lspci: not found\n"), UNKNOWN, "sh: 1: lspci: not found"),
    "an interface": (
        roce_interface,
        CommandAnswer(0, shown(9000, "192.168.0.11")),
        OK,
        "ens224, MTU 9000, 192.168.0.11/24",
    ),
    "an interface for small packets": (
        roce_interface,
        CommandAnswer(0, shown(1500, "192.168.0.11")),
        FAILED,
        "ens224, MTU 1500, 192.168.0.11/24; ens224 has MTU 1500, not 9000",
    ),
    "an interface with another address": (
        roce_interface,
        CommandAnswer(0, shown(9000, "192.168.0.12")),
        FAILED,
        "ens224, MTU 9000, 192.168.0.12/24; ens224 has no address 192.168.0.11/24",
    ),
    "no interface": (
        roce_interface,
        CommandAnswer(1, "", 'Device "" does not exist.\n'),
        FAILED,
        'Device "" does not exist.',
    ),
    "RDMA active": (
        rdma_device,
        CommandAnswer(0, devinfo("PORT_ACTIVE", 4096)),
        OK,
        "mlx5_0 PORT_ACTIVE, path MTU 4096",
    ),
    "RDMA down": (
        rdma_device,
        CommandAnswer(0, devinfo("PORT_DOWN", 4096)),
        FAILED,
        "mlx5_0 PORT_DOWN, path MTU 4096; wanted PORT_ACTIVE with path MTU 4096",
    ),
    "RDMA with small packets": (
        rdma_device,
        CommandAnswer(0, devinfo("PORT_ACTIVE", 1024)),
        FAILED,
        "mlx5_0 PORT_ACTIVE, path MTU 1024; wanted PORT_ACTIVE with path MTU 4096",
    ),
    "no RDMA": (
        rdma_device,
        CommandAnswer(0, "No IB devices found\n"),
        FAILED,
        "no device; wanted PORT_ACTIVE with path MTU 4096",
    ),
    "a GID": (judge.gid, CommandAnswer(0, "mlx5_0 3 ::ffff:192.168.0.11 RoCE v2 ens224\n"), OK, GID),
    "a GID of another address": (
        judge.gid,
        CommandAnswer(0, "mlx5_0 3 ::ffff:192.168.0.99 RoCE v2 ens224\n"),
        FAILED,
        "index 3 of mlx5_0 on ens224, RoCE v2, 192.168.0.99; the node's own address is 192.168.0.11",
    ),
    "a GID among others": (
        judge.gid,
        CommandAnswer(0, "mlx5_0 3 ::ffff:192.168.0.99 RoCE v2 ens224\nmlx5_0 5 ::ffff:192.168.0.11 RoCE v2 ens224\n"),
        OK,
        GID.replace("3", "5", 1),
    ),
    "no GID": (judge.gid, CommandAnswer(1, ""), FAILED, "there is no GID of RoCE v2 with an IPv4 address"),
    "memory unlimited": (judge.memlock, CommandAnswer(0, "unlimited\n"), OK, "unlimited"),
    "memory limited": (judge.memlock, CommandAnswer(0, "65536\n"), FAILED, "65536"),
    "time": (judge.time, CommandAnswer(0, "yes\n2026-11-21T05:00:00Z\n"), OK, "2026-11-21T05:00:00Z"),
    "no time": (
        judge.time,
        CommandAnswer(0, "no\n2026-11-21T05:00:00Z\n"),
        FAILED,
        "2026-11-21T05:00:00Z; the clock does not follow network time",
    ),
    "a whole mesh": (judge.mesh, CommandAnswer(0, "node-2 reached\nnode-1 reached\n"), OK, "2 nodes reached"),
    "a mesh with a hole": (
        judge.mesh,
        CommandAnswer(0, "node-2 not reached\nnode-1 reached\n"),
        FAILED,
        "not reached: node-2",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_printed_means_this(name: str) -> None:
    judged, answer, verdict, evidence = CASES[name]
    assert judged(answer, NODE_1) == (verdict, evidence)


# By hand after iboe_get_mtu of Linux, which takes 96 bytes of headers off an interface's MTU.
@pytest.mark.parametrize(
    ("mtu", "path"), [(1500, 1024), (2143, 1024), (2144, 2048), (4191, 2048), (4192, 4096), (9000, 4096)]
)
def test_the_path_mtu_wanted_is_what_the_interfaces_leaves_beside_the_headers(mtu: int, path: int) -> None:
    assert judge.rdma_device(CommandAnswer(0, devinfo("PORT_ACTIVE", path)), NODE_1, mtu=mtu)[0] is OK


def test_a_pvrdma_adapter_is_not_asked_for_ats_since_no_function_of_a_nic_is_in_the_guest() -> None:
    seen = {each.fact for each in seen_of(nic=NicKind.PVRDMA)}
    assert "ATS" not in seen
    assert seen >= {"RDMA device", "RoCE interface", "RoCE GID"}


def test_a_host_whose_manager_could_not_be_read_leaves_the_branch_open() -> None:
    assert judge.branch(CommandAnswer(0, "525.105.17"), facts(vgpu_manager=None))[0] is UNKNOWN


@pytest.mark.parametrize(
    ("manager", "runs"),
    [
        ("525.105.14", {"525", "510"}),
        ("535.183.04", {"535", "525", "470"}),  # long-term branches: 16 after 13
        ("550.54.16", {"550", "535"}),
        ("570.133.10", {"570", "550"}),
        ("580.65.05", {"580", "570", "535"}),
        ("595.10.01", {"595", "580"}),  # newer than the table
        ("450.80", {"450"}),
    ],
)
def test_drivers_run_under_managers_as_nvidias_release_notes_say(manager: str, runs: set[str]) -> None:
    known = ("450", "460", "470", "510", "525", "535", "550", "570", "580", "595")
    assert {each for each in known if driver.runs_under(f"{each}.65.06", manager)} == runs


def test_passthrough_gpus_are_counted() -> None:
    guest_facts = facts(profile="", gpus=2)
    assert judge.gpus(CommandAnswer(0, "NVIDIA A100-PCIE-40GB\nNVIDIA A100-PCIE-40GB\n"), guest_facts)[0] is OK
    one = judge.gpus(CommandAnswer(0, "NVIDIA A100-PCIE-40GB\n"), guest_facts)
    assert one == (FAILED, "NVIDIA A100-PCIE-40GB; wanted 2 × whole GPUs")


@pytest.mark.parametrize("answer", [SILENT, WITHOUT_DRIVER, WITHOUT_LIBRARY])
def test_without_a_driver_nothing_of_the_gpus_is_in_order(answer: CommandAnswer) -> None:
    asked = (judge.gpus, judge.branch, judge.licence, judge.ecc, judge.clocks, judge.distance, judge.nvlink)
    assert not [judged for judged in asked if judged(answer, NODE_1)[0] is OK]


def book(*steps: str) -> Playbook:
    return load_text('about = "x"\n' + "".join(f"[[step]]\n{step}\n" for step in steps))


CONTAINER = 'kind = "container_sshd"\nimage = "nvcr.io/x:1"\nport = 2200'


def seen_of(*books: Playbook, lab: bool = False, gpus: int = 1, nic: NicKind = NicKind.SRIOV) -> tuple[Evidence, ...]:
    return verify(Recorder(), facts(lab=lab, gpus=gpus, nic=nic), wanted.wanted_by_playbooks(books))


def test_everything_is_asked_in_one_round_trip_and_nothing_is_done() -> None:
    shell = Recorder()
    seen = verify(shell, NODE_1, wanted.wanted_by_playbooks([book(CONTAINER)]))
    assert len(shell.asked) == 1
    assert not shell.told
    assert {each.fact: each.command for each in seen} == shell.asked[0]


def test_of_gpus_that_are_handed_through_whole_no_licence_is_asked_and_nvlink_only_where_it_joins() -> None:
    def asked(**knobs: Any) -> set[str]:
        seen = verify(Recorder(), facts(**knobs), wanted.wanted_by_playbooks([]))
        return {each.fact for each in seen} & {"licence", "driver branch", "NVLink", "GPUs and profile"}

    assert asked() == {"licence", "driver branch", "GPUs and profile"}
    assert asked(profile="") == {"GPUs and profile"}
    assert asked(linked=True, gpus=2) == {"licence", "driver branch", "NVLink", "GPUs and profile"}


def test_passthrough_gpus_want_no_licence_and_no_driver_of_the_vgpu_managers_branch() -> None:
    guest_facts = facts(profile="", vgpu_manager="535.183.04", secrets={})
    assert VgpuLicence().probes(guest_facts) == {}
    assert VgpuLicence().drift({}, guest_facts) is None
    step = NvidiaDriver(
        source=FileSource("https://m/NVIDIA-Linux-x86_64-550.54.15.run"), any_branch=False, sha256="0" * 64
    )
    assert step.probes(guest_facts)
    with pytest.raises(GuestError, match="of branch 550"):
        step.probes(replace(guest_facts, profile="grid_a100-40c"))


def test_a_guest_that_answers_nothing_has_nothing_in_order() -> None:
    assert not [each.fact for each in seen_of() if each.severity is OK]
    assert all(each.message and each.target == "node-1" for each in seen_of())


def test_whatever_a_lab_guest_shows_says_lab() -> None:
    assert all(each.lab and each.message.startswith("lab: ") for each in seen_of(lab=True))
    assert not any(each.lab or "lab" in each.message for each in seen_of())


def test_a_node_without_gpus_is_not_asked_about_them() -> None:
    seen = {each.fact for each in seen_of(book(CONTAINER), gpus=0)}
    assert not [fact for fact in seen if "GPU" in fact]
    assert seen >= {"SSH mesh", "RDMA device"}


def test_a_node_without_a_fast_nic_is_not_asked_about_it() -> None:
    seen = {each.fact for each in seen_of(nic=NicKind.NONE)}
    assert not [fact for fact in seen if "NIC" in fact or "RoCE" in fact or "RDMA" in fact or fact == "ATS"]
    assert seen >= {"SSH mesh", "GPUs and profile"}


def test_containers_are_asked_about_when_a_playbook_wants_one(golden: Golden) -> None:
    assert not [each.fact for each in seen_of() if "container" in each.fact]
    seen = {each.fact: each.command for each in seen_of(book(CONTAINER))}
    golden(fact for fact in seen if "container" in fact)
    assert any("-p 2200" in command for fact, command in seen.items() if "container" in fact)


def test_each_dataset_of_the_playbooks_is_asked_about() -> None:
    assert not [each.fact for each in seen_of() if "dataset" in each.fact]
    seen = seen_of(book(*(f'kind = "dataset"\npath = "/srv/{name}"' for name in ("a", "b"))))
    assert [each.fact for each in seen if "dataset" in each.fact] == ["dataset /srv/a", "dataset /srv/b"]


def test_what_is_right_is_what_the_playbooks_say() -> None:
    steps = book('kind = "ssh_mesh"\nuser = "mpi"\nport = 2222', 'kind = "netplan_roce"\nmtu = 1500')
    seen = {each.fact: each for each in seen_of(steps)}
    assert " -u mpi -- ssh " in seen["SSH mesh"].command
    assert "-p 2222" in seen["SSH mesh"].command
    assert "su - mpi" in seen["locked memory"].command
    answers = {"RDMA device": CommandAnswer(0, devinfo("PORT_ACTIVE", 1024))}
    found = {each.fact: each for each in verify(Recorder(answers), NODE_1, wanted.wanted_by_playbooks([steps]))}
    assert found["RDMA device"].severity is OK


def test_words_in_unforeseen_places_are_no_crash() -> None:
    for text in ("", "\n", "GPU0", ":", "hca_id", "1,\n,", " reached", "a v2 b", "enabled", "\tGPU0\tNIC0\nGPU0 X"):
        for judged, *_ in CASES.values():
            for status in (0, 1):
                verdict, evidence = judged(CommandAnswer(status, text), NODE_1)
                assert verdict in Severity
                assert evidence
