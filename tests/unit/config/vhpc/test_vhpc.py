"""A vhpc-toolkit file becomes a cluster file: ranges, hosts, addresses; what is lost is told, and nothing is run."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest

from vsphere_ml.config.load import load_text, mistakes_of
from vsphere_ml.config.mistakes import MOST
from vsphere_ml.config.vhpc.translate import Translation, translate
from vsphere_ml.core.diagnostics import Severity
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.model.device_kinds import NicKind
from vsphere_ml.core.model.spec import CloneKind, FirstBootBy, Latency
from vsphere_ml.core.units import MIB

if TYPE_CHECKING:
    from tests.golden import Golden

CONF = """\
# Eight nodes for training, two to a host
[BASE]
template: ubuntu-gpu
cpu = 16
memory: 64.5
datacenter: dc-1
cluster: gpu
vm_folder:
datastore: vsan
linked: 1

[NETWORK]
is_dhcp: false
port_group: VM Network
domain: train.example.com
netmask: 255.255.255.0
gateway: 10.0.7.1
dns: ['10.0.0.53', '10.0.1.53']

[LATENCY]
latency: high
cpu_reservation: true
memory_reservation: true

[RDMA]
sriov_port_group: roce
pf: 0000:af:00.0

[VGPU]
vgpu: grid_a100-40c
mmio_size: 128

[HOSTS]
host: esx-0{5:8}.example.com

[_DVS_]
roce-dvs: pnic: vmnic5 HOSTS port_group: roce

[_VMS_]
train{1:8}: BASE NETWORK LATENCY RDMA VGPU HOSTS ip: 10.0.7.1{1:8} cpu: 24
"""


def spec_of(made: Translation) -> object:
    return load_text(made.text, "/tmp/cluster.toml")


def notes_of(made: Translation) -> dict[str, int | None]:
    return {note.target: note.line for note in made.notes}


def swapped(old: str, new: str) -> str:
    assert old in CONF
    return CONF.replace(old, new)


def test_a_whole_file_is_one_that_check_accepts() -> None:
    spec = load_text(translate(CONF, "train_8.conf").text)
    assert (spec.name, spec.source.template, spec.source.clone) == ("train-8", "ubuntu-gpu", CloneKind.LINKED)
    assert (spec.location.datacenter, spec.location.folder, spec.location.datastore) == ("dc-1", None, "vsan")
    assert (spec.guest.first_boot, spec.guest.domain) == (FirstBootBy.CUSTOMIZATION, "train.example.com")
    assert not spec.anti_affinity, "vhpc-toolkit makes no DRS rules, and two nodes share a host"
    node = spec.nodes[4]
    assert (node.cpus, node.memory, node.mmio_gib) == (24, 66048 * MIB, 128), "the right-most wins; memory is in GiB"
    assert (node.gpu.profile, node.latency, node.port_group) == ("grid_a100-40c", Latency.HIGH, "VM Network")
    assert (node.nic.kind, node.nic.port_group) == (NicKind.SRIOV, "roce")
    assert node.address is not None
    assert (node.address.address, node.address.gateway) == ("10.0.7.15/24", "10.0.7.1")
    assert node.address.dns == ("10.0.0.53", "10.0.1.53")


def test_what_is_left_out_is_told_with_its_line_and_stands_in_the_file() -> None:
    made = translate(CONF, "train.conf")
    assert notes_of(made) == {"pf": 27, "roce-dvs": 37}
    assert "#   27: pf: " in made.text
    assert "#   37: roce-dvs: " in made.text


@pytest.mark.parametrize(
    ("written", "numbers"),
    [("esx-0{5:8}", "56785678"), ("esx-0{{5:8}}", "55667788"), ("esx-0{6:8}", "67867867"), ("esx-0{5:5}", "55555555")],
    ids=["round robin", "consecutive", "round robin that does not divide", "one"],
)
def test_hosts_are_dealt_out_as_there(written: str, numbers: str) -> None:
    spec = load_text(translate(swapped("esx-0{5:8}", written), "train.conf").text)
    assert [node.host for node in spec.nodes] == [f"esx-0{n}.example.com" for n in numbers]


def test_leading_zeros_of_a_range_are_lost_as_there() -> None:
    made = translate(swapped("train{1:8}:", "train{001:008}:"), "train.conf")
    assert [node.name for node in load_text(made.text).nodes] == [f"train{n}" for n in range(1, 9)]


def test_rows_share_defaults_and_keep_their_own() -> None:
    rows = (
        "a1: BASE NETWORK RDMA VGPU ip: 10.0.7.11\na2: BASE NETWORK RDMA VGPU ip: 10.0.7.12 memory: 128 latency: high\n"
    )
    made = translate(CONF[: CONF.index("train{1:8}")] + rows, "train.conf")
    raw = tomllib.loads(made.text)
    assert raw["defaults"]["cpus"] == 16
    assert "memory" not in raw["defaults"]
    nodes = {node.name: node for node in load_text(made.text).nodes}
    assert {name: (node.memory // MIB, node.latency) for name, node in nodes.items()} == {
        "a1": (66048, Latency.NORMAL),
        "a2": (131072, Latency.HIGH),
    }


@pytest.mark.parametrize(
    ("old", "new", "key", "line"),
    [
        ("vgpu: grid_a100-40c", "vgpu: grid_p100-4q", "gpu.profile", 30),
        ("vgpu: grid_a100-40c", "device: ['0000:3B:00.0']", "gpu.device", 30),
        ("port_group: VM Network", "svs_name: other", "network.port_group", 40),
        ("netmask: 255.255.255.0", "netmask: ${mask}", "network.address", 40),
        ("cpu = 16", "cpu_shares: 100", "cpus", 40),
        ("template: ubuntu-gpu", "instant: 1", "source.template", None),
    ],
)
def test_what_the_file_does_not_say_is_left_to_fill_in(old: str, new: str, key: str, line: int | None) -> None:
    made = translate(swapped(old, new).replace(" cpu: 24", ""), "train.conf")
    assert notes_of(made)[key] == line
    assert next(note for note in made.notes if note.target == key).severity is Severity.WARNING
    wanted = "source" if key.startswith("source") else key
    missing = [problem.target for problem in mistakes_of(made.text, "cluster.toml")]
    assert key == "network.address" or any(wanted in each for each in missing), "check asks for it too"


def test_what_a_netmask_to_fill_in_leaves_open_is_carried_over_all_the_same() -> None:
    made = translate(swapped("netmask: 255.255.255.0", "netmask: ${mask}"), "train.conf")
    network = tomllib.loads(made.text)["nodes"][0]["network"]
    assert network == {"port_group": "VM Network", "gateway": "10.0.7.1", "dns": ["10.0.0.53", "10.0.1.53"]}


def test_adapters_on_one_port_group_are_a_count_and_others_are_told() -> None:
    both = "RDMA sriov_port_group: roce sriov_port_group: storage VGPU"
    made = translate(swapped("RDMA VGPU", both), "train.conf")
    nodes = load_text(made.text).nodes
    assert {(node.nic.kind, node.nic.count, node.nic.port_group) for node in nodes} == {(NicKind.SRIOV, 2, "roce")}
    assert [note.line for note in made.notes if note.target == "sriov_port_group"] == [40]


def test_a_board_that_the_tables_do_not_have_is_no_slip_of_the_keyboard(golden: Golden) -> None:
    made = translate(swapped("vgpu: grid_a100-40c", "vgpu: grid_p100-4q"), "train.conf")
    golden(next(note.message for note in made.notes if note.target == "gpu.profile"))


@pytest.mark.parametrize(
    "text",
    [
        "[_VMS_]\n" + "".join(f"vm{at}: nothing\n" for at in range(5_000)),
        "[A]\n" + "nonsense\n" * 5_000,
        "".join(f"[s{at}]\na: 1\n" for at in range(2_000))
        + "[_VMS_]\n"
        + "".join(f"v{at}: x\n" for at in range(2_000)),
    ],
)
def test_of_very_many_mistakes_the_first_are_told(text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        translate(text, "train.conf")
    assert len(refused.value.problems) == MOST


def test_vms_are_bounded_together() -> None:
    text = "[A]\ntemplate: t\n[_VMS_]\n" + "".join(f"v{at}-{{1:9000}}: A\n" for at in range(500))
    with pytest.raises(ConfigError) as refused:
        translate(text, "train.conf")
    assert [problem.line for problem in refused.value.problems] == [5]


def test_a_value_may_go_on_over_very_many_lines() -> None:
    text = "[A]\ntemplate: t\ndns: ['1.1.1.1'" + "\n 1.1.1.1" * 20_000 + "\n" + " " * 100_000 + "\n[_VMS_]\nvm: A\n"
    assert translate(text, "train.conf").nodes == 1


def test_a_gateway_outside_the_network_is_no_gateway() -> None:
    made = translate(swapped("gateway: 10.0.7.1", "gateway: 172.1.101.1"), "train.conf")
    assert notes_of(made)["gateway"] == 17
    assert not mistakes_of(made.text, "cluster.toml")


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("RDMA VGPU HOSTS", "RDMA VGPUS HOSTS", 40),
        ("cpu = 16", "cpu = many", 4),
        ("cpu = 16", "cpu = 4.7", 4),
        ("memory: 64.5", "memory: inf", 5),
        ("{5:8}.ex", "{8:5}.ex", 34),
        ("{5:8}.ex", "{5:5000000}.ex", 34),
        ("{5:8}.ex", "{01:20}.ex", 34),
        ("{5:8}.ex", "{{5:7}}.ex", 34),
        ("{5:8}.ex", "{5:6}{1:2}.ex", 34),
        ("10.0.7.1{1:8}", "10.0.7.1{1:4}", 40),
        ("train{1:8}:", "train1:", 34),
        ("[LATENCY]", "[NETWORK]", 20),
        ("linked: 1", "linked", 10),
        ("[BASE]", "", 3),
        ("[_VMS_]", "[VMS]", None),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(old: str, new: str, line: int | None, golden: Golden) -> None:
    with pytest.raises(ConfigError) as refused:
        translate(swapped(old, new).replace(" cpu: 24", ""), "train.conf")
    golden(problem.message for problem in refused.value.problems if problem.line == line)


def test_nothing_of_a_file_is_evaluated_and_no_password_is_copied(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = swapped("['10.0.0.53', '10.0.1.53']", "[print('run'), '10.0.0.53']")
    hostile = hostile.replace("[NETWORK]", 'guest_password: hunter2\nguest_username: ro"ot\n\n[NETWORK]')
    made = translate(hostile, "train.conf")
    assert capsys.readouterr().out == ""
    assert "hunter2" not in made.text
    assert tomllib.loads(made.text)["guest"]["user"] == 'ro"ot'
    with pytest.raises(ConfigError) as refused:
        translate(CONF.replace("cpu: 24", "guest_password: hunter2 hunter3"), "train.conf")
    assert "hunter" not in str(refused.value.details)


def test_comments_cannot_be_broken_out_of() -> None:
    made = translate(swapped("[_DVS_]\n", "[_DVS_]\nevil\x0b\x1b\x85x: [cluster]\n"), "tr\nain.conf")
    assert not mistakes_of(made.text, "cluster.toml")
