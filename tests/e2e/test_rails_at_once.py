"""Two lab guests with two and with four shaped rails: what all carry at once is the sum of their rates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e import measured, trained
from tests.e2e.test_fabric_rails import ADDRESS, ANSWER, RAILS, run
from tests.integration.guests import needed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.trained import Cluster

pytestmark = [pytest.mark.e2e, pytest.mark.lab, pytest.mark.long, needed, pytest.mark.timeout(3600)]
MBIT = 20
# What tc counts of a full TCP segment: 1448 bytes of payload with IPv4, TCP and its timestamps, and Ethernet's 14.
PAYLOAD = 1448 / 1514


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with measured.fabric(tmp_path_factory.mktemp("rails"), nodes=2, rails=len(RAILS)) as made:
        run(made, ANSWER)
        for rail in RAILS:
            run(made, ADDRESS.format(rail=rail, number=rail.removeprefix("eth")))
        yield made


@pytest.fixture(autouse=True)
def _rates(cluster: Cluster) -> None:
    cluster.shape(f"{MBIT}mbit")


def rails_at_once(cluster: Cluster, record: str, rails: tuple[str, ...]) -> Any:
    """Measure these rails, both nodes sending by all of them, and return what `explain` says."""
    wanted = (word for rail in rails for word in ("--rail", rail))
    link = ("--workload", "link", "--link-gbit", str(MBIT / 1000), "--results", record)
    trained.runs(measured.bench(cluster.shell, *measured.ONCE, *link, *wanted))
    return measured.told(cluster, "explain", record)


@pytest.mark.parametrize("number", [2, 4])
def test_the_sum_is_within_3_percent_of_the_rates(cluster: Cluster, number: int) -> None:
    told = rails_at_once(cluster, f"sum-{number}", RAILS[:number])
    assert [(each["node"], len(each["rails"])) for each in told["rails"]] == [("node-1", number), ("node-2", number)]
    for each in told["rails"]:
        assert each["nominal_bytes_per_s"] == pytest.approx(number * MBIT * 1e6 / 8)
        assert each["share"] == pytest.approx(PAYLOAD, rel=0.03)
    assert [each for each in told["diagnostics"] if each["code"] in measured.BLAMES] == []


def test_a_slowed_rail_of_four_is_named(cluster: Cluster) -> None:
    run(cluster, "tc qdisc replace dev eth3 root tbf rate 5mbit burst 32k latency 50ms", "--only", "node-1")
    told = rails_at_once(cluster, "slowed", RAILS)
    blamed = [each["target"] for each in told["diagnostics"] if each["code"] in measured.BLAMES]
    assert blamed == ["node-1 to node-2 eth3"]
    shares = {each["node"]: each["share"] for each in told["rails"]}
    assert shares["node-1"] == pytest.approx(PAYLOAD * 65 / 80, rel=0.05)
    assert shares["node-2"] == pytest.approx(PAYLOAD, rel=0.03)
