"""Which launches training regimes come to, what their ranks run, and what cannot be run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.bench.jobs import PEERS, job
from vsphere_ml.bench.launch.launchers import launch
from vsphere_ml.bench.launch.matrix import BenchSpec, expand
from vsphere_ml.bench.launch.programs import with_program
from vsphere_ml.bench.launch.regime_needs import check_regime
from vsphere_ml.bench.model.record import Configuration, Workload
from vsphere_ml.bench.network.regimes import Regime
from vsphere_ml.bench.probe.survey import Surveyed
from vsphere_ml.core.errors import NotPossible

SPEC = BenchSpec(
    workloads=(Workload.REGIMES,),
    nodes=(3, 2),
    regimes=tuple(Regime),
    batch=16,
    options={Workload.REGIMES: {"parameters": "1000", "samples": "96"}},
)
NODES = tuple(Surveyed(node=each.name, runtime=True) for each in PEERS)


def configuration(regime: Regime, spec: BenchSpec = SPEC) -> Configuration:
    """Return the regime's smallest."""
    return next(each for each in expand(spec) if each.options["regime"] == regime)


def test_regimes_in_one_machine_are_launched_once_and_the_others_on_each_number_of_nodes() -> None:
    made = [(each.options["regime"], each.nodes, each.ranks) for each in expand(SPEC)]
    between = ("async", "sync", "sharded", "ring")
    assert made == [
        ("single", 1, 1),
        ("local-server", 1, 2),
        ("local-allreduce", 1, 2),
        *((each, 2, 2) for each in between),
        *((each, 3, 3) for each in between),
    ]


@pytest.mark.parametrize(
    ("regime", "launcher", "words"),
    [
        (Regime.SINGLE, "by_ssh.py", ["--by", "nothing"]),
        (Regime.LOCAL_SERVER, "by_ssh.py", ["--by", "servers"]),
        (Regime.LOCAL_ALLREDUCE, "horovod.runner.launch", ["--by", "allreduce"]),
        (Regime.ASYNCHRONOUS, "by_ssh.py", ["--by", "servers", "--asynchronous"]),
        (Regime.SYNCHRONOUS, "by_ssh.py", ["--by", "servers"]),
        (Regime.SHARDED, "by_ssh.py", ["--servers", "2", "--by", "servers"]),
        (Regime.RING, "horovod.runner.launch", ["--by", "allreduce"]),
    ],
)
def test_what_the_ranks_of_a_regime_run(regime: Regime, launcher: str, words: list[str]) -> None:
    asked = configuration(regime)
    made = with_program(replace(job(), configuration=asked, nodes=PEERS[: asked.nodes]), None, ())
    options = list(made.program[2:])
    assert made.program[1].endswith("/regimes.py")
    for each in ("--parameters", "1000", "--samples", "96", "--batch", "16", *words):
        options.remove(each)
    assert options == []
    assert any(launcher in word for word in launch(made).command)


@pytest.mark.parametrize(
    ("regime", "nodes", "hint"),
    [(Regime.RING, 1, "--nodes 2"), (Regime.SYNCHRONOUS, 1, "--nodes 2"), (Regime.SHARDED, 2, "--nodes 3")],
)
def test_too_few_nodes_for_a_regime_are_a_reason(regime: Regime, nodes: int, hint: str) -> None:
    asked = configuration(regime, replace(SPEC, nodes=(nodes,), servers=3))
    with pytest.raises(NotPossible) as caught:
        check_regime(asked, NODES)
    assert (caught.value.code, caught.value.target, caught.value.hint) == ("bench.regime-nodes", regime, hint)


def test_servers_need_no_horovod_and_a_ring_does() -> None:
    without = tuple(replace(each, runtime=False) for each in NODES)
    check_regime(configuration(Regime.SYNCHRONOUS), without)
    with pytest.raises(NotPossible) as caught:
        check_regime(configuration(Regime.RING), without)
    assert (caught.value.code, caught.value.target) == ("bench.regime-runtime", "ring")


def test_a_regime_of_one_machine_is_possible_on_one_node() -> None:
    for regime in (Regime.SINGLE, Regime.LOCAL_SERVER, Regime.LOCAL_ALLREDUCE):
        check_regime(configuration(regime, replace(SPEC, nodes=(1,))), NODES[:1])
