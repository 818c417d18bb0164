"""What the bytes went by. NCCL's lines are made after its sources: no GPU told them.

FORMS has what the format strings of src/transport/net.cc, p2p.cc and shm.cc give in each release that changed them.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.bench.jobs import job, traffic, trained
from vsphere_ml.bench.launch import transports
from vsphere_ml.bench.model import rank_log
from vsphere_ml.bench.model.record import Configuration, Proof, Verdict, Workload
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.probe.rdma import Port, PortGid
from vsphere_ml.bench.probe.survey import Surveyed
from vsphere_ml.bench.proof import channels, paths
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.model.spec import RoceSpec

if TYPE_CHECKING:
    from tests.golden import Golden

INFO = "node-1:41:77 [0] NCCL INFO "
GPUDIRECT = "node-1:41:77 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA\n"
WITHOUT = "node-1:41:77 [0] NCCL INFO Channel 01/0 : 1[b000] -> 0[b000] [receive] via NET/IB/0(1)/Shared\n"
SOCKET = "node-1:41:77 [0] NCCL INFO Channel 00 : 0[b000] -> 1[b000] [send] via NET/Socket/0\n"
INSIDE = "node-1:41:77 [0] NCCL INFO Channel 00/02 : 0[0] -> 1[1] via P2P/IPC/read\n"
SHARED = "node-1:41:77 [0] NCCL INFO Channel 00/02 : 0[0] -> 1[1] via SHM/direct/direct\n"
PORT = Port(device="mlx5_0", gids=(PortGid(index=3, address="10.1.0.11", interface="eth1"),))
RDMA = {"ports": (PORT,), "gpus": 1, "mtu": {"eth1": 9000}}


TWO = paths.JobNodes(count=2)
BOTH_WAYS = "".join(
    f"node-{printer}:41:77 [0] NCCL INFO Channel 00/0 : {way} [{side}] via NET/IB/0/GDRDMA\n"
    for way, printers in {"0[0] -> 1[0]": (1, 2), "1[0] -> 0[0]": (2, 1)}.items()
    for printer, side in zip(printers, ("send", "receive"), strict=True)
)
FORMS = {  # line: channel, sender, receiver and carrier
    "Ring 00 : 4 -> 0 via NET/IB/0": ("00", "4", "0", "NET/IB"),  # 2.3
    "Ring 00 : 0[0] -> 1[1] via P2P/direct pointer": ("00", "0", "1", "P2P"),  # 2.3
    "Ring 00 : 0[0] -> 1[1] via direct shared memory": ("00", "0", "1", "SHM"),  # 2.3
    "Ring 00 : 4 -> 0 [receive] via NET/IB/0/GDRDMA": ("00 receive", "4", "0", "NET/IB/GDRDMA"),  # 2.4
    "Ring 01 : 3 -> 10 [send] via NET/Socket/0": ("01 send", "3", "10", "NET/Socket"),  # 2.4
    "Ring 01 : 0[160] -> 8[1b000] [send] via NET/IB/0/GDRDMA": ("01 send", "0", "8", "NET/IB/GDRDMA"),  # 2.5
    "Channel 00 : 0[b000] -> 1[b000] [send] via NET/Socket/0": ("00 send", "0", "1", "NET/Socket"),  # 2.7
    "Channel 00 : 0[b000] -> 1[c000] via direct shared memory": ("00", "0", "1", "SHM"),  # 2.7
    "Channel 03 : 2[b000] -> 3[c000] via P2P/indirect/1[d000]": ("03", "2", "3", "P2P"),  # 2.8
    "Channel 01/0 : 1[b000] -> 0[b000] [receive] via NET/IB/0/Shared": ("01 receive", "1", "0", "NET/IB"),  # 2.12
    "Channel 01/0 : 1[b000] -> 8[b000] [send] via NET/IB/0(1)/GDRDMA": ("01 send", "1", "8", "NET/IB/GDRDMA"),  # 2.12
    "Channel 00 : 0[0] -> 1[1] via SHM/direct/direct": ("00", "0", "1", "SHM"),  # 2.13
    "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read": ("00", "0", "1", "P2P"),  # 2.18
    "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IBext_v8/2/GDRDMA": ("00 send", "0", "1", "NET/IB/GDRDMA"),  # 2.18
    "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA(PCI)/Shared": (
        "00 send",
        "0",
        "1",
        "NET/IB/GDRDMA",
    ),  # 2.26
    "Channel 00/0 : 0[0] -> 1[0] [send] via NET/UCX/0/GDRDMA": ("00 send", "0", "1", "NET/UCX/GDRDMA"),
    "Channel 00 : 0[0] -> 1[1] via SHM/direct": ("00", "0", "1", "SHM"),  # 2.30
}
NO_CHANNELS = (  # what else these releases log, and is no way of any bytes
    "Channel 00/02 :    0   1",
    "Ring 00 : 1 -> 0 -> 1",
    "Trees [0] 1/-1/-1->0->-1 [1] -1/-1/-1->0->1",
    "CollNet 00/0 : 0 [send] via COLLNET/SHARP/0/GDRDMA",
    "Connected all rings",
)


@pytest.mark.parametrize(("said", "what"), FORMS.items())
def test_each_form_of_nccls_line_is_read(said: str, what: tuple[str, str, str, str]) -> None:
    line = f"[1,0]<stdout>:node-1:41:77 [0] NCCL INFO {said}"
    (path,) = channels.of_nccl(f"noise\n{line}\nnoise\n")
    assert (path.channel, path.sender, path.receiver, path.carrier) == what
    assert path.evidence == line


@pytest.mark.parametrize("said", NO_CHANNELS)
def test_other_lines_are_no_channels(said: str) -> None:
    assert channels.of_nccl(f"node-1:41:77 [0] NCCL INFO {said}\n") == ()


def test_every_channel_is_read_of_lines_that_a_launcher_ran_together() -> None:
    went = channels.of_nccl(GPUDIRECT.strip() + SOCKET)
    assert [each.carrier for each in went] == ["NET/IB/GDRDMA", "NET/Socket"]
    assert judged(Transport.GPUDIRECT, GPUDIRECT.strip() + SOCKET).verdict is Verdict.NO


def both_ways(hosts: int, via: str = "NET/IB/0/GDRDMA", layer: str = "") -> str:
    """Return a ring's lines over hosts of one rank each, and of the ports that they list."""
    listed = f"NET/IB : Using [0]mlx5_0:1/{layer} [RO]; OOB eth0:10.0.0.11<0>"
    return "".join(f"node-{at + 1}:41:77 [0] NCCL INFO {listed}\n" for at in range(hosts if layer else 0)) + "".join(
        f"node-{at + 1}:41:77 [0] NCCL INFO Channel 00/0 : {sender}[0] -> {receiver}[0] [{side}] via {via}\n"
        for at in range(hosts)
        for side, sender, receiver in (("send", at, (at + 1) % hosts), ("receive", (at - 1) % hosts, at))
    )


@pytest.mark.parametrize("transport", [Transport.ROCE, Transport.GPUDIRECT])
@pytest.mark.parametrize(
    ("hosts", "nodes", "verdict"), [(2, 2, Verdict.YES), (3, 3, Verdict.YES), (2, 3, Verdict.UNKNOWN)]
)
def test_an_imported_log_must_show_every_node_send_and_receive(
    transport: Transport, hosts: int, nodes: int, verdict: Verdict
) -> None:
    log = both_ways(hosts, layer="RoCE")
    made = paths.of_import(transport, channels.of_nccl(log), paths.JobNodes(count=nodes), log)
    assert made is not None
    assert made.verdict is verdict


@pytest.mark.parametrize("skipped", range(4))
def test_one_side_of_one_node_that_is_not_told_leaves_the_path_unknown(skipped: int) -> None:
    """One rank's lines, without the list of devices, were once a proof for any number of nodes."""
    lines_told = both_ways(2).splitlines()
    log = "\n".join(lines_told[:skipped] + lines_told[skipped + 1 :])
    made = paths.of_import(Transport.ROCE, channels.of_nccl(log), TWO, log)
    assert made is not None
    assert made.verdict is Verdict.UNKNOWN
    listed = paths.JobNodes.of_devices(2, {0: "node-1.example.org", 1: "node-2"})
    made = paths.of_import(Transport.ROCE, channels.of_nccl(log), listed, log)
    assert made is not None
    assert (f"node-{skipped // 2 + 1}" in made.evidence, f"node-{2 - skipped // 2}" in made.evidence) == (True, False)


def test_on_one_node_no_channel_proves_a_path_between_nodes() -> None:
    log = both_ways(2).replace("node-2", "node-1")
    assert paths.of_import(Transport.ROCE, channels.of_nccl(log), paths.JobNodes(count=1), log) is None


def test_ranks_of_another_communicator_are_found_on_the_hosts_that_log_them() -> None:
    """Node 2's own communicator has ranks 0 and 1, which in the job's are on node 1 and node 2."""
    inside = "node-2:41:77 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via P2P/IPC\n"
    assert judged(Transport.GPUDIRECT, BOTH_WAYS + inside).verdict is Verdict.YES
    known = "".join(
        f"node-{host}:41:77 [0] NCCL INFO comm 0xaa{host}{rank} rank {rank} nranks 2 cudaDev 0 commId {of} - COMPLETE\n"
        for of, rank, host in (("0x1", 0, 1), ("0x1", 1, 2), ("0x2", 0, 2), ("0x2", 1, 1))
    )
    turned = "node-2:41:77 [0] NCCL INFO Channel 03/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA\n"
    (path,) = channels.of_nccl(known + turned)
    assert (path.host, path.other_host) == ("node-2", "node-1")


def test_what_stays_on_a_host_by_its_network_is_no_path_between_nodes() -> None:
    known = "".join(
        f"node-1:4{rank}:77 [0] NCCL INFO comm 0xaa rank {rank} nranks 2 cudaDev 0 busId 1 - Init COMPLETE\n"
        for rank in (0, 1)
    )
    log = known + "node-1:40:77 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] [send] via NET/Socket/0\n"
    assert channels.of_nccl(log)[0].other_host == "node-1"
    assert judged(Transport.ROCE, log).verdict is Verdict.UNKNOWN


def test_up_to_2_3_the_receiving_end_alone_tells_and_nothing_of_the_senders_memory() -> None:
    log = "".join(
        f"node-{rank + 1}:41:77 [0] NCCL INFO Ring 00 : {1 - rank} -> {rank} via NET/IB/0/GDRDMA\n" for rank in (0, 1)
    )
    assert judged(Transport.ROCE, log).verdict is Verdict.YES
    made = paths.of_import(Transport.GPUDIRECT, channels.of_nccl(log), TWO, log)
    assert (made and made.verdict, made and "2.3" in made.evidence) == (Verdict.UNKNOWN, True)


@pytest.mark.parametrize(
    ("layer", "roce", "gpudirect"),
    [("RoCE", "yes", "yes"), ("IB", "no", "yes"), ("", "unknown", "yes"), ("UNSPECIFIED", "unknown", "yes")],
)
def test_nccls_ib_is_roce_only_by_ports_of_which_it_says_so(layer: str, roce: str, gpudirect: str) -> None:
    log = both_ways(2, layer=layer)
    asked = (Transport.TCP, Transport.ROCE, Transport.GPUDIRECT)
    made = {each: paths.of_import(each, channels.of_nccl(log), TWO, log) for each in asked}
    assert {each.value: found and found.verdict.value for each, found in made.items()} == {
        "tcp": None,
        "roce": roce,
        "gpudirect": gpudirect,
    }


def test_what_nccl_calls_roce_is_none_of_a_device_that_speaks_iwarp_alone() -> None:
    log = both_ways(2, layer="RoCE").replace("mlx5_0", "i40iw0")
    made = paths.of_import(Transport.ROCE, channels.of_nccl(log), TWO, log)
    assert made is not None
    assert made.verdict is Verdict.UNKNOWN


def test_in_a_launch_the_guests_kernels_tell_of_ports_that_nccl_does_not_name() -> None:
    assert judged(Transport.ROCE, BOTH_WAYS).verdict is Verdict.YES
    assert judged(Transport.ROCE, BOTH_WAYS, ports=(Port(device="mlx5_0"),)).verdict is Verdict.UNKNOWN
    assert judged(Transport.ROCE, both_ways(2, layer="IB")).verdict is Verdict.NO


@pytest.mark.parametrize(
    ("lines", "verdict"),
    [
        (["NET/IB : No device found."], "no"),
        (["NET/IB : No device found.", "NET/IB : Using [RO]; OOB eth0:10.0.0.11<0>", "Using network Socket"], "no"),
        (["Failed to open libibverbs.so[.1]", "NET/Socket : Using [0]eth0:10.0.0.11<0>", "Using network Socket"], "no"),
        (["NET/Socket : Using [0]eth0:10.0.0.11<0>"], None),  # up to 2.4 also where a plugin is taken then
        (["NET/IB : No device found.", "MNNVL 1 cliqueId 1 cliqueSize 8 cliqueRank 0"], None),
        (["NET/IB : No device found.", "NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.11<0>"], None),
        (["NET/IB : No device found.", "Using network AWS Libfabric"], None),
        (["NET/IB : No device found.", "NET/OFI Selected Provider is efa"], None),
        (["Using network IB"], None),
    ],
)
def test_nccl_without_a_device_for_rdma_is_evidence_that_none_was_used(lines: list[str], verdict: str | None) -> None:
    log = "".join(f"node-1:41:77 [0] NCCL INFO {line}\n" for line in lines)
    made = paths.of_import(Transport.GPUDIRECT, channels.of_nccl(log), TWO, log)
    assert (made and made.verdict.value) == verdict
    assert judged(Transport.ROCE, log).verdict.value == (verdict or "unknown")


@pytest.mark.parametrize(
    ("beside", "named"),
    [
        ("node-1:41:77 [0] NCCL INFO CollNet 00/0 : 0 [send] via COLLNET/SHARP/0/GDRDMA\n", "COLLNET/SHARP"),
        ("node-1:41:77 [0] NCCL INFO MNNVL 1 cliqueId 1 cliqueSize 8 cliqueRank 0\n", "MNNVL"),
        ("node-1:41:77 [0] NCCL INFO Channel 00/0 : 0[0] -> 2[1] via P2P/MNNVL\n", "MNNVL"),
    ],
)
def test_what_may_carry_collectives_instead_is_named_and_leaves_the_path_unknown(beside: str, named: str) -> None:
    proof = judged(Transport.GPUDIRECT, BOTH_WAYS + beside)
    assert (proof.verdict, named in proof.evidence) == (Verdict.UNKNOWN, True)
    assert judged(Transport.GPUDIRECT, both_ways(2, "NET/Socket/0") + beside).verdict is Verdict.NO


@pytest.mark.parametrize(
    ("chosen", "carrier"),
    [
        ("P2P plugin v8 IBext_v8", "NET/IB/GDRDMA"),
        ("P2P plugin UCX", "NET/UCX/GDRDMA"),
        ("", "NET/NCCL RDMA Plugin v8/GDRDMA"),
    ],
)
def test_what_hpcx_calls_its_plugin_is_rdma_only_where_it_says_so(chosen: str, carrier: str) -> None:
    log = f"node-1:41:77 [0] NCCL INFO {chosen}\n" + both_ways(2, "NET/NCCL RDMA Plugin v8/0/GDRDMA")
    assert {each.carrier for each in channels.of_nccl(log)} == {carrier}


@pytest.mark.parametrize(
    ("listed", "index", "nic"),
    [
        ("NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_3:1/IB/SHARP [RO]; OOB eth0:10.0.0.11<0>", 1, "mlx5_3:1/IB"),
        (
            "NET/IB : Using [0]={[0] mlx5_0:1/RoCE, [1] mlx5_1:1/RoCE} [RO]; OOB eth0:10.0.0.11<0>",
            0,
            "mlx5_0:1/RoCE+mlx5_1:1/RoCE",
        ),
        ("NET/IB : Made virtual device [4] name=mlx5_0+mlx5_1 speed=400000 ndevs=2", 4, "mlx5_0+mlx5_1"),
        (
            f"NET/IB : Using [0]mlx5_0:1/RoCE ; OOB x\n{INFO}Made virtual device [4] name=mlx5_0+mlx5_1 s=4 ndevs=2",
            4,
            "mlx5_0+mlx5_1/RoCE",
        ),
        # 2.30's rail and plane, or a plane alone: net_ib/init.cc
        ("NET/IB : Using [0]mlx5_0:1:2:3/RoCE [1]mlx5_1:1:2/IB ; OOB eth0:10.0.0.11<0>", 0, "mlx5_0:1:2:3/RoCE"),
        ("NET/IB : Using [0]mlx5_0:1::3/RoCE [1]mlx5_1:1::4/IB ; OOB eth0:10.0.0.11<0>", 1, "mlx5_1:1::4/IB"),
        ("NET/Socket : Using [0]eth0:10.0.0.11<0>", 0, ""),
    ],
)
def test_the_nic_of_a_channel_is_found_in_the_list_of_its_process(listed: str, index: int, nic: str) -> None:
    log = f"node-1:41:77 [0] NCCL INFO {listed}\n" + both_ways(1, f"NET/IB/{index}")
    assert [each.nic for each in channels.of_nccl(log)] == [nic, nic]


def test_the_proof_names_the_nics() -> None:
    using = "".join(f"node-{at}:41:77 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE ; OOB x\n" for at in (1, 2))
    assert judged(Transport.ROCE, using + both_ways(2)).evidence.endswith(" on mlx5_0:1/RoCE (4)")


def test_a_plugin_where_tcp_was_asked_for_is_no_proof_of_another_way() -> None:
    assert judged(Transport.TCP, both_ways(2, "NET/UCX/0")).verdict is Verdict.UNKNOWN
    assert judged(Transport.TCP, both_ways(2, "NET/Socket/0")).verdict is Verdict.YES
    assert judged(Transport.TCP, both_ways(2, "NET/IB/0")).verdict is Verdict.NO


def judged(
    transport: Transport,
    log: str = "",
    texts: dict[str, str] | None = None,
    variables: dict[str, str] | None = None,
    **has: Any,
) -> Proof:
    asked = replace(job(), configuration=replace(job().configuration, transport=transport), variables=variables or {})
    logs = rank_log.read(texts or {"node-1": trained(0), "node-2": trained(1)})
    surveyed = [Surveyed(node=name, runtime=True, **{**RDMA, **has}) for name in ("node-1", "node-2")]
    made = paths.proof(asked, logs, channels.of_nccl(log) or paths.of_sockets(asked, logs), surveyed, log)
    assert made is not None
    return made


def test_gpudirect_that_was_used_is_proven(golden: Golden) -> None:
    proof = judged(Transport.GPUDIRECT, BOTH_WAYS)
    assert proof.verdict == Verdict.YES
    golden(proof.evidence)


def test_a_log_that_was_cut_proves_nothing(golden: Golden) -> None:
    proof = judged(Transport.GPUDIRECT, GPUDIRECT)
    assert proof.verdict == Verdict.UNKNOWN
    golden(proof.evidence)


@pytest.mark.parametrize("way", ["NET/UCX/0/GDRDMA", "NET/UCX/0", "NET/AWS Libfabric/0"])
@pytest.mark.parametrize("transport", [Transport.ROCE, Transport.GPUDIRECT])
def test_a_plugin_that_may_take_either_way_proves_nothing(way: str, transport: Transport) -> None:
    proof = judged(transport, BOTH_WAYS.replace("NET/IB/0/GDRDMA", way))
    assert proof.verdict is Verdict.UNKNOWN
    assert paths.of_import(transport, channels.of_nccl(GPUDIRECT.replace("NET/IB/0/GDRDMA", way)), TWO, "") == replace(
        proof, evidence=proof.evidence.replace("4 of 4", "1 of 1")
    )


@pytest.mark.parametrize(
    ("log", "has"),
    [
        (SOCKET, {"ports": ()}),
        (SOCKET, {"ports": (Port(device="mlx5_0"),)}),
        (GPUDIRECT + WITHOUT, {}),
        (WITHOUT, {"peermem": True, "ats": False}),
        (WITHOUT, {"peermem": True, "gpu_to_nic": "SYS"}),
        (WITHOUT.replace("receive", "send"), {"dma_buf": True}),
    ],
)
def test_gpudirect_that_was_not_used_fails_with_what_the_guests_show(
    log: str, has: dict[str, Any], golden: Golden
) -> None:
    proof = judged(Transport.GPUDIRECT, log, **has)
    assert proof.verdict is Verdict.NO
    golden(proof.evidence)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("Failed to open libibverbs.so[.1]", True),  # up to 2.29
        ("Count not open libibverbs.so\nnode-1:41:77 [0] NCCL INFO Count not open libibverbs.so.1", True),  # 2.30
        ("Count not open libibverbs.so", False),  # and then it found libibverbs.so.1
    ],
)
def test_a_library_that_nccl_does_not_find_is_a_cause(line: str, *, named: bool) -> None:
    proof = paths.of_import(Transport.ROCE, channels.of_nccl(SOCKET), TWO, f"node-1:41:77 [0] NCCL INFO {line}\n")
    assert proof is not None
    assert ("NCCL says" in proof.evidence) == named


def test_no_cause_is_made_up(golden: Golden) -> None:
    proof = judged(Transport.ROCE, SOCKET)
    golden(proof.evidence)


@pytest.mark.parametrize(
    "variables",
    [
        {"NCCL_DEBUG": "WARN"},
        {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": "/tmp/nccl"},
    ],
)
def test_sockets_beside_an_nccl_that_was_told_to_be_silent_prove_nothing(
    variables: dict[str, str], golden: Golden
) -> None:
    proof = judged(Transport.GPUDIRECT, variables=variables)
    assert proof.verdict is Verdict.UNKNOWN
    golden(proof.evidence)
    assert judged(Transport.GPUDIRECT, BOTH_WAYS, variables=variables).verdict is Verdict.YES


@pytest.mark.parametrize(
    ("built", "verdict"), [(["gloo"], Verdict.NO), (["gloo", "nccl"], Verdict.UNKNOWN), (None, Verdict.UNKNOWN)]
)
def test_sockets_show_the_way_only_of_a_horovod_without_nccl(built: list[str] | None, verdict: Verdict) -> None:
    said = '"kind": "model", ' + (f'"built": {json.dumps(built)}, ' if built else "")
    texts = {f"node-{at + 1}": trained(at).replace('"kind": "model", ', said) for at in range(2)}
    assert judged(Transport.GPUDIRECT, texts=texts).verdict is verdict


def test_channels_inside_a_node_say_nothing_of_the_network() -> None:
    texts = {"node-1": trained(0) + trained(1), "node-2": ""}
    assert judged(Transport.ROCE, INSIDE, texts).verdict is Verdict.UNKNOWN


def test_tcp_is_proven_by_the_sockets_that_the_ranks_held(golden: Golden) -> None:
    proof = judged(Transport.TCP)
    assert proof.verdict is Verdict.YES
    golden(proof.evidence)


def test_tcp_over_another_adapter_than_the_chosen_one_is_a_failure(golden: Golden) -> None:
    stray = trained(0).replace(traffic(0), traffic(0, own="172.16.0.11", other="10.0.0.12"))
    proof = judged(Transport.TCP, texts={"node-1": stray, "node-2": trained(1)})
    assert proof.verdict == Verdict.NO
    golden(proof.evidence)


def test_ranks_that_nobody_saw_talk_are_not_proven() -> None:
    silent = trained(0).replace(traffic(0), "")
    assert judged(Transport.TCP, texts={"node-1": silent, "node-2": trained(1)}).verdict is Verdict.UNKNOWN


def test_each_transport_asks_nccl_for_itself() -> None:
    both = [Surveyed(node=name, runtime=True, **RDMA) for name in ("node-1", "node-2")]  # type: ignore[arg-type]
    assert transports.nccl_settings(Transport.TCP, "eth0", both).common["NCCL_IB_DISABLE"] == "1"
    roce = transports.nccl_settings(Transport.ROCE, "eth0", both).common
    assert (roce["NCCL_IB_HCA"], roce["NCCL_IB_GID_INDEX"], roce["NCCL_NET_GDR_LEVEL"]) == ("=mlx5_0:1", "3", "LOC")
    assert transports.nccl_settings(Transport.GPUDIRECT, "eth0", both).common["NCCL_NET_GDR_READ"] == "1"


@pytest.mark.parametrize(
    ("device", "index", "by_node"),
    [
        ("mlx5_0", 3, {}),
        ("mlx5_0", 5, {"a": {"NCCL_IB_GID_INDEX": "3"}, "b": {"NCCL_IB_GID_INDEX": "5"}}),
        ("mlx5_2", 3, {"a": {"NCCL_IB_HCA": "=mlx5_0:1"}, "b": {"NCCL_IB_HCA": "=mlx5_2:1"}}),
    ],
)
def test_each_node_gets_the_settings_in_which_it_differs(
    device: str, index: int, by_node: dict[str, dict[str, str]]
) -> None:
    other = replace(PORT, device=device, gids=(replace(PORT.gids[0], index=index),))
    both = [Surveyed(node=name, runtime=True, ports=(each,), gpus=1) for name, each in (("a", PORT), ("b", other))]
    asked = transports.nccl_settings(Transport.ROCE, "eth0", both)
    assert asked.by_node == by_node
    named = {name for each in by_node.values() for name in each}
    assert named.isdisjoint(asked.common)
    assert {"NCCL_IB_HCA", "NCCL_IB_GID_INDEX"} <= {*asked.common, *named}


@pytest.mark.parametrize(("roce", "wanted"), [({}, None), ({"dscp": 26}, "104"), ({"dscp": 26, "ecn": True}, "106")])
def test_rdma_packets_are_marked_as_the_hosts_trust_them(roce: dict[str, Any], wanted: str | None) -> None:
    both = [Surveyed(node=name, runtime=True, **RDMA) for name in ("node-1", "node-2")]  # type: ignore[arg-type]
    asked = transports.nccl_settings(Transport.GPUDIRECT, "eth0", both, RoceSpec(**roce).traffic_class).common
    assert asked.get("NCCL_IB_TC") == wanted


def asked_over(transport: Transport, launcher: str = "mpirun", backend: str = "mpi") -> Configuration:
    return Configuration(
        workload=Workload.TRAIN, nodes=2, ranks=2, transport=transport, launcher=launcher, backend=backend
    )


@pytest.mark.parametrize("transport", [Transport.ROCE, Transport.PVRDMA])
def test_rdma_from_host_memory_is_ucx_s_where_mpi_carries_it_and_needs_no_gpu(transport: Transport) -> None:
    both = [Surveyed(node=name, runtime=True, ports=(PORT,)) for name in ("a", "b")]
    asked = transports.transport_settings(asked_over(transport), "eth0", both, traffic_class=104)
    assert asked.over_ucx
    assert asked.common == {
        "UCX_TLS": "rc,sm,self",
        "UCX_LOG_LEVEL": "info",
        "UCX_NET_DEVICES": "mlx5_0:1",
        "UCX_IB_GID_INDEX": "3",
        "UCX_IB_TRAFFIC_CLASS": "104",
    }


@pytest.mark.parametrize(
    ("transport", "launcher", "backend"),
    [
        (Transport.GPUDIRECT, "mpirun", "mpi"),
        (Transport.PVRDMA, "horovodrun", "gloo"),
        (Transport.PVRDMA, "horovodrun", "mpi"),
    ],
)
def test_without_a_gpu_nothing_else_goes_by_rdma(transport: Transport, launcher: str, backend: str) -> None:
    both = [Surveyed(node=name, runtime=True, ports=(PORT,)) for name in ("a", "b")]
    with pytest.raises(NotPossible) as refused:
        transports.transport_settings(asked_over(transport, launcher, backend), "eth0", both)
    assert (refused.value.code, refused.value.target) == ("bench.no-rdma", "a")


def test_where_horovod_reduces_on_gpus_nccl_takes_the_ports_whatever_launches() -> None:
    both = [Surveyed(node=name, runtime=True, horovod_nccl=True, **RDMA) for name in ("a", "b")]  # type: ignore[arg-type]
    asked = transports.transport_settings(asked_over(Transport.ROCE), "eth0", both)
    assert (asked.over_ucx, asked.common["NCCL_IB_HCA"]) == (False, "=mlx5_0:1")


def test_rdma_is_refused_where_a_guest_has_none() -> None:
    with pytest.raises(NotPossible) as refused:
        transports.nccl_settings(Transport.ROCE, "eth0", [Surveyed(node="node-1", runtime=True)])
    assert (refused.value.code, refused.value.target) == ("bench.no-rdma", "node-1")
