"""Pings of full size between all ports, with a ping that knows which way a small MTU lies."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.unit.bench.sites import port, rdma_nodes
from vsphere_ml.bench.probe import packet_size
from vsphere_ml.core.errors import BenchError

if TYPE_CHECKING:
    from pathlib import Path

    from vsphere_ml.bench.probe.survey import Surveyed

# As iputils' ping: -s is what follows 28 bytes of headers, and -M do forbids to cut the packet.
_PING = """\
#!/bin/sh
cut=no
while [ $# -gt 0 ]; do
    case $1 in
    -s) size=$(($2 + 28)); shift ;;
    -M) [ "$2" = do ] && cut=never; shift ;;
    -c|-i|-W) shift ;;
    -I) from=$2; shift ;;
    -q) ;;
    *) address=$1 ;;
    esac
    shift
done
[ $cut = never ] || exit 0
case "$from $address" in %s) [ $size -le 1500 ] ;; esac
"""


def four_nodes() -> tuple[Surveyed, ...]:
    """Return four nodes of two rails each."""
    one = rdma_nodes()[0]
    return tuple(
        replace(
            one,
            node=f"node-{n}",
            mtu={"eth1": 9000, "eth2": 9000},
            ports=(port(last=10 + n), port("mlx5_1", interface="eth2", last=20 + n)),
        )
        for n in range(1, 5)
    )


def pinged(folder: Path, patch: pytest.MonkeyPatch, small: str) -> dict[str, str]:
    """Return what each node's command prints here, where packets of more than 1500 bytes are lost on some ways."""
    (folder / "ping").write_text(_PING % small)
    (folder / "ping").chmod(0o755)
    patch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    asks = packet_size.commands(four_nodes())
    return {
        node: subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout
        for node, command in asks.items()
    }


def test_every_pair_is_pinged_on_every_rail() -> None:
    asks = packet_size.commands(four_nodes())
    assert [sum(" 8972" in line for line in command.splitlines()) for command in asks.values()] == [6, 6, 6, 6]


def test_nothing_is_lost_where_the_mtu_is_the_same_all_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packet_size.check(four_nodes(), pinged(tmp_path, monkeypatch, "nothing"))


def test_one_rail_of_one_node_behind_a_small_mtu_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BenchError) as lost:
        packet_size.check(four_nodes(), pinged(tmp_path, monkeypatch, '"eth2 10.1.0.23"'))
    assert lost.value.code == "bench.packet-size"
    assert lost.value.target == "node-1 to node-3"
    assert len(lost.value.details) == 3
    assert all("10.1.0.23" in each for each in lost.value.details)


def test_where_no_ping_is_nothing_is_said_to_be_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    command = packet_size.commands(four_nodes())["node-1"]
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_one_node_alone_pings_nobody() -> None:
    assert packet_size.commands(four_nodes()[:1]) == {}
