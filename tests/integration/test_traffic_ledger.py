"""What kernels count of a ring all-reduce between network namespaces, against what the ledger says it must send."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.unit.bench import jobs
from vsphere_ml.bench.launch import remote_job
from vsphere_ml.bench.model import rank_log
from vsphere_ml.bench.model.record import TrafficVerdict, Workload
from vsphere_ml.bench.proof import ledger

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vsphere_ml.bench.model.record import TrafficCount

MIB = 1 << 20
EXCHANGES = 12  # so many that a segment which TCP sends twice, as it may on a busy machine, is far below two percent
# Another run on this machine has its own.
BRIDGES = tuple(f"vr{os.getpid()}b{network}" for network in range(2))
# A ring over TCP as any library makes it. It takes: own place in the ring, its length, its network, bytes, exchanges.
RING = """
import faulthandler, json, os, socket, sys, threading, time
faulthandler.dump_traceback_later(50, exit=False)  # says where a rank waits that nobody answers
place, ranks, network, size, exchanges = map(int, sys.argv[1:])
sys.path.insert(0, os.environ["WORKLOADS"])
from allreduce import differences, read_counters

address = "10.99.%d.%d"
with socket.create_server((address % (network, place + 1), 7777)) as server:
    server.settimeout(60)
    deadline = time.monotonic() + 60
    while True:
        try:
            following = socket.create_connection((address % (network, (place + 1) % ranks + 1), 7777))
            break
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    before, _ = server.accept()
following.settimeout(60)
before.settimeout(60)

def receive(count):
    while count:
        got = len(before.recv(min(count, 1 << 20)))
        assert got, "the rank before has ended"
        count -= got

def exchange(size):
    for _ in range(2 * (ranks - 1)):
        receiver = threading.Thread(target=receive, args=(size // ranks,))
        receiver.start()
        following.sendall(bytes(size // ranks))
        receiver.join()

exchange(4 * ranks)
counters = read_counters()
for _ in range(exchanges):
    exchange(size)
exchange(4 * ranks)
print(json.dumps(differences(counters, read_counters())))
time.sleep(0.5)
"""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def name(place: int) -> str:
    return f"vr{os.getpid()}n{place}"


@contextmanager
def namespaces(count: int) -> Iterator[None]:
    """Join so many namespaces by two networks, each with an adapter in either."""
    try:
        for network, bridge in enumerate(BRIDGES):
            ip("link", "add", bridge, "type", "bridge")
            ip("link", "set", bridge, "up")
            for place in range(count):
                if not network:
                    ip("netns", "add", name(place))
                inside, outside = f"eth{network}", f"{bridge}-{place}"
                peer = ("peer", "name", inside, "address", mac(network, place), "netns", name(place))
                ip("link", "add", outside, "type", "veth", *peer)
                ip("link", "set", outside, "master", bridge, "up")
                ip("-n", name(place), "addr", "add", f"10.99.{network}.{place + 1}/24", "dev", inside)
                ip("-n", name(place), "link", "set", inside, "up")
                introduce(network, place, count)
        yield
    finally:
        # A namespace goes some time after it was deleted, and its adapters with it; those that are deleted go at once.
        outsides = [f"{bridge}-{place}" for bridge in BRIDGES for place in range(count)]
        for link in (*outsides, *BRIDGES):
            subprocess.run(["ip", "link", "del", link], capture_output=True, check=False)
        for place in range(count):
            subprocess.run(["ip", "netns", "del", name(place)], capture_output=True, check=False)


def mac(network: int, place: int) -> str:
    return f"02:99:00:00:{network:02x}:{place + 1:02x}"


def introduce(network: int, place: int, count: int) -> None:
    """Give a namespace the others' MAC addresses: no rank waits for an answer to ARP, and none is counted."""
    for other in {*range(count)} - {place}:
        known = (f"10.99.{network}.{other + 1}", "lladdr", mac(network, other), "dev", f"eth{network}")
        ip("-n", name(place), "neigh", "add", *known, "nud", "permanent")


def ring(ranks: int, size: int, *, exchanges: int = EXCHANGES, network: int = 0) -> list[dict[str, list[int]]]:
    """Return what the adapters of each rank sent meanwhile."""
    folder = remote_job.WORKLOADS
    running = [
        subprocess.Popen(
            ["ip", "netns", "exec", name(place), "env", f"WORKLOADS={folder}", sys.executable, "-c", RING]
            + [str(each) for each in (place, ranks, network, size, exchanges)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for place in range(ranks)
    ]
    try:
        said = [each.communicate(timeout=120)[0] for each in running]  # all: each has its own part of a failure
        assert [each.returncode for each in running] == [0] * ranks
        return [json.loads(each) for each in said]
    finally:
        for each in running:
            each.kill()
            each.wait()


def counted(ranks: int, size: int, sent: Sequence[dict[str, list[int]]]) -> tuple[TrafficCount, ...]:
    """Return the ledger of a job of so many ranks that was to make EXCHANGES all-reduces of that size."""
    job = jobs.job(workload=Workload.ALLREDUCE)
    job = replace(job, configuration=replace(job.configuration, nodes=ranks, ranks=ranks))
    line = {"kind": "sweep", "size_bytes": size, "seconds": [0.1], "right": True, "exchanges": EXCHANGES}
    texts = {f"node-{at}": jobs.place(at) + "\n" + jobs.told(**line, sent=each) for at, each in enumerate(sent)}
    return ledger.count(job, rank_log.read(texts))


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_a_ring_sends_what_the_ledger_says_within_two_percent(ranks: int) -> None:
    with namespaces(ranks):
        for size in (MIB, 4 * MIB, 16 * MIB):
            counts = counted(ranks, size, ring(ranks, size))
            assert [each.verdict for each in counts] == [TrafficVerdict.EXPECTED] * ranks
            assert [each.counted_bytes for each in counts] == pytest.approx(
                [each.expected_bytes for each in counts], rel=0.02
            )


def test_five_planted_faults_are_each_named() -> None:
    with namespaces(3):
        twice = ring(3, 4 * MIB, exchanges=2 * EXCHANGES)
        half = ring(3, 2 * MIB)
        nothing = ring(3, 4 * MIB, exchanges=0)
        other = ring(3, 4 * MIB, network=1)
        fewer = ring(2, 4 * MIB)  # of three ranks, two exchange
    seen = {
        code: {each.verdict for each in counted(3, 4 * MIB, sent)}
        for code, sent in {
            TrafficVerdict.TWICE: twice,
            TrafficVerdict.HALF: half,
            TrafficVerdict.NOTHING: nothing,
            TrafficVerdict.OTHER_INTERFACE: other,
            TrafficVerdict.FEWER_RANKS: fewer,
        }.items()
    }
    assert seen == {verdict: {verdict} for verdict in seen}
