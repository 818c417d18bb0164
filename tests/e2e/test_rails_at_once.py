"""Two lab guests with two and with four shaped rails: what all carry at once is the sum of their rates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e import measured, trained
from tests.e2e.test_fabric_rails import RAILS, fabric_of_rails, run
from tests.integration.guests import needed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.trained import Cluster

pytestmark = [pytest.mark.e2e, pytest.mark.lab, pytest.mark.long, needed, pytest.mark.timeout(3600)]
MBIT = 20
TRIES = 3  # what else runs on the machine slows a measurement, and makes none faster
# What tc counts of a full TCP segment: 1448 bytes of payload with IPv4, TCP and its timestamps, and Ethernet's 14.
PAYLOAD = 1448 / 1514


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with fabric_of_rails(tmp_path_factory.mktemp("rails"), nodes=2) as made:
        yield made


@pytest.fixture(autouse=True)
def _rates(cluster: Cluster) -> None:
    cluster.shape(f"{MBIT}mbit")


def rails_at_once(cluster: Cluster, record: str, rails: tuple[str, ...], *more: str) -> Any:
    """Measure these rails, both nodes sending by all of them, and return what `explain` says."""
    wanted = (word for rail in rails for word in ("--rail", rail))
    link = ("--workload", "link", "--results", record, *more)
    trained.runs(measured.bench(cluster.shell, *measured.ONCE, *link, *wanted))
    return measured.told(cluster, "explain", record)


def best_shares(cluster: Cluster, rails: tuple[str, ...]) -> dict[str, float]:
    """Return the best share of the nominal sum that each node sends, of some measurements."""
    best: dict[str, float] = {}
    for at in range(TRIES):
        given = ("--link-gbit", str(MBIT / 1000))
        told = rails_at_once(cluster, f"sum-{len(rails)}-{at}", rails, *given)["rails"]
        for each in told:
            assert each["nominal_bytes_per_s"] == pytest.approx(len(rails) * MBIT * 1e6 / 8)
            assert len(each["rails"]) == len(rails)
            best[each["node"]] = max(best.get(each["node"], 0.0), each["share"])
    return best


@pytest.mark.parametrize("number", [2, 4])
def test_the_sum_is_within_3_percent_of_the_rates(cluster: Cluster, number: int) -> None:
    shares = best_shares(cluster, RAILS[:number])
    assert shares == {node: pytest.approx(PAYLOAD, rel=0.03) for node in ("node-1", "node-2")}


def test_a_slowed_rail_of_four_is_named(cluster: Cluster) -> None:
    run(cluster, "tc qdisc replace dev eth3 root tbf rate 5mbit burst 32k latency 50ms", "--only", "node-1")
    told = rails_at_once(cluster, "slowed", RAILS)
    blamed = [each["target"] for each in told["diagnostics"] if each["code"] in measured.BLAMES]
    assert blamed == ["node-1 to node-2 eth3"]
    sent = {each["node"]: each["bytes_per_s"] for each in told["rails"]}
    assert sent["node-1"] / sent["node-2"] == pytest.approx(65 / 80, rel=0.05)
