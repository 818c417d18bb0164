"""Eight lab guests with four rails each at low rates, one thing wrong at a time: that is named, and nothing else."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.e2e import measured
from tests.integration.guests import needed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.trained import Cluster

pytestmark = [pytest.mark.e2e, pytest.mark.lab, pytest.mark.long, needed, pytest.mark.timeout(3600)]

RAILS = ("eth1", "eth2", "eth3", "eth4")
# Every rail is a subnet of its own: of several in one Linux sends all by the first. All are on one bridge, so an
# adapter must not answer for another's address, as Linux has it (arp_ignore in Documentation/networking/ip-sysctl.rst).
ANSWER = "cd /proc/sys/net/ipv4/conf/all && echo 1 >arp_ignore && echo 2 >arp_announce"
ADDRESS = "ip address replace 10.20{number}.0.$(hostname | tr -dc 0-9)/24 dev {rail} && ip link set {rail} up"


@contextmanager
def fabric_of_rails(folder: Path, nodes: int) -> Iterator[Cluster]:
    """Yield so many guests whose rails have addresses."""
    with measured.fabric(folder, nodes=nodes, rails=len(RAILS)) as made:
        run(made, ANSWER)
        for rail in RAILS:
            run(made, ADDRESS.format(rail=rail, number=rail.removeprefix("eth")))
        yield made


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with fabric_of_rails(tmp_path_factory.mktemp("fabric"), nodes=8) as made:
        yield made


@pytest.fixture(autouse=True)
def _rates(cluster: Cluster) -> None:
    cluster.shape("none", "--uplink")
    cluster.shape("10mbit")


def run(cluster: Cluster, command: str, *only: str) -> None:
    ended = cluster.shell.here("run", "--sudo", *only, "--", command)
    assert ended.status == 0, ended.out + ended.err


def blamed(cluster: Cluster, record: str) -> list[tuple[str, str]]:
    return measured.blamed_links(cluster, record, *(word for rail in RAILS for word in ("--rail", rail)))


def test_where_nothing_is_wrong_nothing_is_named(cluster: Cluster) -> None:
    assert blamed(cluster, "sound") == []


def test_a_slow_guest_is_named(cluster: Cluster) -> None:
    cluster.shape("3mbit", "node-3")
    assert blamed(cluster, "guest") == [("bench.slow-link", "node-3")]


def test_one_slow_rail_of_four_is_named(cluster: Cluster) -> None:
    slowed = "tc qdisc replace dev eth3 root tbf rate 3mbit burst 32k latency 50ms"
    run(cluster, slowed, "--only", "node-5")
    assert blamed(cluster, "rail") == [("bench.slow-link", "node-5 to node-6 eth3")]


def test_an_oversubscribed_uplink_is_named(cluster: Cluster) -> None:
    cluster.shape("80mbit", "--uplink", *(f"node-{at}" for at in range(2, 9, 2)))
    sides = " | ".join(",".join(f"node-{at}" for at in range(first, 9, 2)) for first in (1, 2))
    assert blamed(cluster, "uplink") == [("bench.oversubscribed", sides)]
