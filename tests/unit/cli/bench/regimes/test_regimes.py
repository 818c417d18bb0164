"""The options of `vsml bench regimes`, and what they come to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from vsphere_ml.bench.launch.matrix import expand
from vsphere_ml.bench.model.record import Workload
from vsphere_ml.bench.network.regimes import Regime
from vsphere_ml.cli.app import run
from vsphere_ml.cli.bench.regimes.regimes import RegimeLaunchOptions, RegimeTrainingOptions, bench_spec

if TYPE_CHECKING:
    from pathlib import Path


def test_by_default_every_regime_is_measured_on_all_nodes() -> None:
    spec = bench_spec(RegimeTrainingOptions(), RegimeLaunchOptions(), 3)
    assert (spec.workloads, spec.nodes, spec.regimes) == ((Workload.REGIMES,), (3,), tuple(Regime))
    assert {each.options["parameters"] for each in expand(spec)} == {"1000000"}
    assert spec.repeats == 3


def test_options_make_other_configurations() -> None:
    given = RegimeTrainingOptions(regime=[Regime.SHARDED], nodes=["2-4"], servers=3, megabytes=0.4, batch=8, samples=96)
    made = expand(bench_spec(given, RegimeLaunchOptions(), 4))
    assert [each.nodes for each in made] == [2, 3, 4]
    assert {tuple(sorted(each.options.items())) for each in made} == {
        (("parameters", "100000"), ("regime", "sharded"), ("samples", "96"), ("servers", "3"))
    }
    assert {each.batch for each in made} == {8}


@pytest.mark.parametrize(
    "words", [("--regime", "parameter-server"), ("--gradient-mbytes", "nan"), ("--nodes", "0"), ("--servers", "1")]
)
def test_what_is_no_choice_is_refused(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text("")
    status = run(["bench", "regimes", str(file), *words, "-o", "json"])
    assert status == 2
    assert json.loads(capsys.readouterr().out)["errors"]
