"""What guests answer before anything runs. The answers are in the form of Debian 12's tools."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.bench.jobs import PEERS
from vsphere_ml.bench.model.job import RunIn, Runtime, Tools
from vsphere_ml.bench.probe import survey
from vsphere_ml.core.errors import BenchError
from vsphere_ml.core.model.guest import CommandAnswer

if TYPE_CHECKING:
    from tests.golden import Golden

NONE = CommandAnswer(1, "")
ADDRESSES = """\
1: lo    inet 127.0.0.1/8 scope host lo
2: eth0    inet {0}/24 brd 10.0.0.255 scope global eth0
3: docker0    inet 172.17.0.1/16 brd 172.17.255.255 scope global docker0
"""


def seen(node: str, address: str, **but: CommandAnswer) -> survey.Surveyed:
    answers: dict[str, Any] = dict.fromkeys(survey.probes(Tools()), NONE)
    answers |= {
        "python": CommandAnswer(0, "Python 3.11.2\n"),
        "where": CommandAnswer(0, "/opt/vsml/runtime/bin/python\n"),
        "packages": CommandAnswer(0, "/opt/x/horovod-0.28.1.dist-info\n/opt/x/tensorflow_cpu-2.21.0.dist-info\n"),
        "addresses": CommandAnswer(0, ADDRESSES.format(address)),
        "mtu": CommandAnswer(0, "/sys/class/net/eth0/mtu:9000\n/sys/class/net/lo/mtu:65536\n"),
        "speed": CommandAnswer(0, "/sys/class/net/eth0/speed:10000\n/sys/class/net/docker0/speed:-1\n"),
        "macs": CommandAnswer(
            0, "/sys/class/net/eth0/address:00:50:56:AA:00:01\n/sys/class/net/lo/address:00:00:00:00:00:00\n"
        ),
        "drivers": CommandAnswer(0, "eth0 vmxnet3\n"),
        "mpirun": CommandAnswer(0, "/usr/bin/mpirun\n"),
        "mpi": CommandAnswer(0, "mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/\n"),
        "home": CommandAnswer(0, "/root\n"),
        "congestion": CommandAnswer(0, "cubic\n"),
    }
    return survey.read(node, answers | but)


def both(**but: CommandAnswer) -> list[survey.Surveyed]:
    return [seen(peer.name, peer.address, **but) for peer in PEERS]


def test_a_guest_is_read_as_a_value() -> None:
    one = seen("node-1", "10.0.0.11")
    assert (one.runtime, one.mpirun, one.mpi_version) == (True, "/usr/bin/mpirun", (4, 1, 4))
    assert one.versions["horovod"] == "0.28.1"
    assert (one.mtu["eth0"], one.congestion_control) == (9000, "cubic")
    assert (one.rates, one.drivers, one.macs["eth0"]) == ({"eth0": 1e10}, {"eth0": "vmxnet3"}, "00:50:56:aa:00:01")


ON, OFF = (f"\t\tATSCtl:\tEnable{sign}, Smallest Translation Unit: 00\n" for sign in "+-")


@pytest.mark.parametrize(
    ("told", "ats"), [(ON, True), (OFF, False), (ON + ON, True), (ON + OFF, False), (OFF + ON, False), ("", None)]
)
def test_ats_holds_where_every_nic_has_it(told: str, ats: bool | None) -> None:  # noqa: FBT001 - a parameter
    assert seen("node-1", "10.0.0.11", ats=CommandAnswer(0, told)).ats is ats


def test_control_traffic_goes_over_the_interface_of_the_nodes_addresses() -> None:
    assert survey.interface(both(), PEERS) == "eth0"


@pytest.mark.parametrize("name", ["docker0", "lo"])
def test_an_interface_that_is_named_must_lead_to_the_other_nodes(name: str, golden: Golden) -> None:
    with pytest.raises(BenchError) as refused:
        survey.interface(both(), PEERS, name)
    assert refused.value.code == "bench.interface"
    golden(refused.value)


def test_a_bridge_counts_when_it_is_named_and_each_node_has_an_address_of_its_own_there(golden: Golden) -> None:
    bridged = [ADDRESSES.format(peer.address).replace("eth0", "br-ex") for peer in PEERS]
    nodes = [seen(peer.name, "", addresses=CommandAnswer(0, text)) for peer, text in zip(PEERS, bridged, strict=True)]
    assert survey.interface(nodes, PEERS, "br-ex") == "br-ex"
    twice = [seen(peer.name, "", addresses=CommandAnswer(0, bridged[0])) for peer in PEERS]
    with pytest.raises(BenchError) as caught:
        survey.interface(twice, PEERS, "br-ex")
    assert (caught.value.code, caught.value.target) == ("bench.interface", "node-1")
    golden(caught.value)


def test_an_interface_that_leads_nowhere_is_never_chosen(golden: Golden) -> None:
    peers = [type(peer)(name=peer.name, address="172.17.0.1") for peer in PEERS]
    with pytest.raises(BenchError) as refused:
        survey.interface(both(), peers)
    assert (refused.value.code, refused.value.target) == ("bench.interface", "node-1")
    golden(refused.value)
    assert refused.value.code == "bench.interface"
    assert refused.value.hint == "--interface NAME"


def test_interfaces_of_different_names_must_be_chosen_by_a_person(golden: Golden) -> None:
    other = CommandAnswer(0, ADDRESSES.format("10.0.0.12").replace("eth0", "ens192"))
    mixed = [seen("node-1", "10.0.0.11"), seen("node-2", "10.0.0.12", addresses=other)]
    with pytest.raises(BenchError, match="node-1: eth0, node-2: ens192"):
        survey.interface(mixed, PEERS)
    with pytest.raises(BenchError) as caught:
        survey.interface(mixed, PEERS, "eth0")
    assert (caught.value.code, caught.value.target) == ("bench.interface", "node-1")
    golden(caught.value)


def test_a_guest_without_horovod_is_named() -> None:
    without = CommandAnswer(0, "/opt/x/tensorflow-2.18.1.dist-info\n")
    with pytest.raises(BenchError) as refused:
        survey.runtime([seen("node-1", "10.0.0.11"), seen("node-2", "10.0.0.12", packages=without)], Tools())
    assert (refused.value.code, refused.value.target) == ("bench.no-runtime", "node-2")


GPU = {"gpus": CommandAnswer(0, "GPU-1\n")}


def test_a_guest_with_gpus_and_no_runtime_is_told_of_the_image_that_has_one() -> None:
    without = CommandAnswer(0, "/opt/x/tensorflow-2.18.1.dist-info\n")
    with pytest.raises(BenchError) as refused:
        survey.runtime(both(packages=without, **GPU), Tools())
    assert (refused.value.code, refused.value.hint) == ("bench.no-runtime", survey.GPU_RUNTIME)


def test_nodes_whose_horovod_leaves_their_gpus_aside_are_known() -> None:
    with_nccl = seen("node-2", "10.0.0.12", nccl=CommandAnswer(0, ""), **GPU)
    assert list(survey.cpu_bound([seen("node-1", "10.0.0.11", **GPU), with_nccl])) == ["node-1"]
    assert list(survey.cpu_bound(both())) == []


def test_mpich_is_known_by_its_launcher_hydra() -> None:
    # The first lines of what MPICH 5.0.2's `mpirun --version` prints.
    text = "HYDRA build details:\n    Version:                                 5.0.2\n    CC:          cc\n"
    one = seen("node-1", "10.0.0.11", mpi=CommandAnswer(0, text))
    assert (one.mpi, one.mpi_version, one.versions["mpich"]) == ("MPICH", (5, 0, 2), "5.0.2")
    unknown = seen("node-1", "10.0.0.11", mpi=CommandAnswer(0, "Intel(R) MPI Library 2021.1.2\n"))
    assert (unknown.mpi, unknown.mpirun) == ("", "")
    newer = seen("node-2", "10.0.0.12", mpi=CommandAnswer(0, text.replace("5.0.2", "4.1.4")))
    assert survey.runtime([seen("node-1", "10.0.0.11"), newer], Tools()).mpirun == ""


def test_mpi_counts_only_when_it_is_the_same_on_every_node() -> None:
    newer = seen("node-2", "10.0.0.12", mpi=CommandAnswer(0, "mpirun (Open MPI) 5.0.11\n"))
    assert survey.runtime(both(), Tools()).mpirun == "/usr/bin/mpirun"
    assert survey.runtime([seen("node-1", "10.0.0.11"), newer], Tools()).mpirun == ""


INSIDE = Tools(python="python3", within=RunIn.CONTAINER, ssh_port=12345)
# As `docker inspect` of Docker 24 prints them.
CONTAINER = {
    "running": CommandAnswer(0, "true\n"),
    "image": CommandAnswer(0, "nvcr.io/nvidia/tensorflow:23.05-tf2-py3 sha256:1f2e\n"),
    "variables": CommandAnswer(
        0, "PATH=/usr/local/mpi/bin:/usr/bin\nOPAL_PREFIX=/opt/hpcx/ompi\nNGC_API_KEY=hunter2\n\n"
    ),
    "shares": CommandAnswer(0, ""),
    "listens": CommandAnswer(0, ""),
    "where": CommandAnswer(0, "/usr/bin/python3\n"),
}


def contained(**but: CommandAnswer) -> Runtime:
    return survey.runtime(both(**(CONTAINER | but)), INSIDE)


def test_ranks_in_a_container_have_its_interpreter_and_its_images_own_variables_and_no_others() -> None:
    made = contained()
    assert (made.python, made.within, made.ssh_port) == ("/usr/bin/python3", RunIn.CONTAINER, 12345)
    assert made.variables == {"PATH": "/usr/local/mpi/bin:/usr/bin", "OPAL_PREFIX": "/opt/hpcx/ompi"}
    container = both(**CONTAINER)[0].container
    assert container is not None
    assert (container.image, container.image_id) == ("nvcr.io/nvidia/tensorflow:23.05-tf2-py3", "sha256:1f2e")


@pytest.mark.parametrize(
    ("pending", "code"),
    [
        ("running", "bench.no-container"),
        ("shares", "bench.container"),
        ("listens", "bench.container"),
        ("python", "bench.no-runtime"),
    ],
)
def test_a_container_that_cannot_be_used_is_told_with_the_reason(pending: str, code: str, golden: Golden) -> None:
    with pytest.raises(BenchError) as refused:
        contained(**{pending: NONE})
    assert refused.value.code == code
    golden(refused.value)


def test_containers_of_two_images_are_refused(golden: Golden) -> None:
    other = seen("node-2", "10.0.0.12", **(CONTAINER | {"image": CommandAnswer(0, "x:2 sha256:77aa\n")}))
    with pytest.raises(BenchError) as caught:
        survey.runtime([both(**CONTAINER)[0], other], INSIDE)
    assert (caught.value.code, caught.value.target) == ("bench.container", "node-1")
    golden(caught.value)


def test_all_that_ranks_need_is_asked_inside_the_container() -> None:
    asked = survey.probes(INSIDE)
    for name in ("python", "packages", "mpirun", "mpi", "nccl_tests"):
        assert shlex.split(asked[name])[:5] == ["docker", "exec", "vsml-worker", "sh", "-c"]
    for asked_there in (Tools(), Tools(python="python3", within=RunIn.KUBERNETES)):
        assert not any(command.startswith("docker") for command in survey.probes(asked_there).values())
