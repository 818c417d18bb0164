from __future__ import annotations

from io import StringIO

from rich.console import Console

from tests.fakes.pictures import quad_8u3
from tests.fakes.wishes import cluster
from vsphere_ml.cli.views.cluster import explanation
from vsphere_ml.core.placement.explain import explain


def test_each_seat_says_its_cost_and_names_every_loser_once() -> None:
    out = StringIO()
    Console(file=out, width=200).print(explanation.text(explain(cluster(2), quad_8u3())))
    text = out.getvalue()
    assert "node-1 on esx-01.lab.test: device group" in text
    assert text.count("GPUDirect RDMA stays below the PCIe switch") == 2
    assert "esx-02.lab.test, esx-03.lab.test, esx-04.lab.test: is as good, and comes later by name" in text
    assert "esx-01.lab.test: has 1 node of this cluster" in text


def test_the_data_has_every_candidate() -> None:
    found = explanation.data(explain(cluster(1), quad_8u3()))
    assert [each["host"] for each in found[0]["losers"]] == [f"esx-0{n}.lab.test" for n in (2, 3, 4)]
