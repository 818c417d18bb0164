"""The network as a ring uses it, on four lab guests at a low rate: an uplink that all share, unseen by any pair."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e import measured
from tests.integration.guests import needed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.trained import Cluster

pytestmark = [pytest.mark.e2e, pytest.mark.lab, needed, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with measured.fabric(tmp_path_factory.mktemp("fabric"), nodes=4) as made:
        made.shape("40mbit")
        yield made


def test_an_uplink_that_no_pair_shows_alone_is_named_and_nothing_else(cluster: Cluster) -> None:
    cluster.shape("40mbit", "--uplink", "node-2", "node-4")
    assert measured.blamed_links(cluster, "uplink") == [("bench.oversubscribed", "node-1,node-3 | node-2,node-4")]
