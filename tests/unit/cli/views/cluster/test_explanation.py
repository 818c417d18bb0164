from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

from rich.console import Console

from tests.fakes.pictures import quad_8u3
from tests.fakes.requirements import cluster
from vsphere_ml.cli.views.cluster import explanation
from vsphere_ml.core.placement.explain import explain
from vsphere_ml.core.placement.solve import find_solution

if TYPE_CHECKING:
    from tests.golden import Golden


def test_each_placement_says_its_cost_and_names_every_loser_once(golden: Golden) -> None:
    out = StringIO()
    Console(file=out, width=200).print(explanation.text(explain(find_solution(cluster(2), quad_8u3()))))
    text = out.getvalue()
    golden(text)


def test_the_data_has_every_candidate() -> None:
    found = explain(find_solution(cluster(1), quad_8u3()))
    assert [each.host for each in found[0].losers] == [f"esx-0{n}.lab.test" for n in (2, 3, 4)]
