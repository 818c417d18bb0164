"""Which records a benchmark goes on with: those whose launches were made as the next ones would be."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.unit.bench import synthetic
from vsphere_ml.bench.model.record import Cluster, Outcome, Run
from vsphere_ml.bench.probe.machines import Machine
from vsphere_ml.bench.records.resume import Conditions, check_cluster, check_conditions
from vsphere_ml.core.errors import ConfigError, NotPossible

if TYPE_CHECKING:
    from tests.golden import Golden

HERE = Conditions(plan_digest="sha256:aa", interface="eth0", machines={"node-0": Machine(), "node-1": Machine()})


def run(nodes: int = 2, *, interface: str = "eth0", digest: str = "sha256:aa") -> Run:
    made = synthetic.sweep(nodes)
    cluster = Cluster(name="train", plan_digest=digest)
    return replace(made, link=replace(made.link, interface=interface), cluster=cluster)


def refused(recorded: Run, here: Conditions = HERE) -> NotPossible:
    with pytest.raises(NotPossible) as caught:
        check_conditions([run(), recorded], here)
    assert caught.value.code == "record.other-conditions"
    assert "--results" in caught.value.hint
    return caught.value


@pytest.mark.parametrize(("name", "lab"), [("other", True), ("train", False)])
def test_a_record_of_another_cluster_is_not_gone_on_with(name: str, lab: bool) -> None:  # noqa: FBT001 - a parameter
    check_cluster([run()], "train", lab=True)
    with pytest.raises(ConfigError) as caught:
        check_cluster([run()], name, lab=lab)
    assert caught.value.code == "record.other-cluster"


def test_launches_over_another_interface_do_not_count_as_made(golden: Golden) -> None:
    error = refused(run(interface="eth1"))
    assert (error.code, error.target) == ("record.other-conditions", "synthetic-allreduce-2-1")
    golden(error)


def test_launches_of_a_cluster_that_was_planned_otherwise_do_not_count_as_made() -> None:
    text = "cluster as planned: sha256:bb in the record, sha256:aa now: its file was changed since"
    assert refused(run(digest="sha256:bb")).details == (text,)


def test_launches_on_other_nodes_do_not_count_as_made(golden: Golden) -> None:
    others = replace(HERE, machines={"node-2": Machine(), "node-3": Machine()})
    with pytest.raises(NotPossible) as caught:
        check_conditions([run()], others)
    assert (caught.value.code, caught.value.target) == ("record.other-conditions", "synthetic-allreduce-2-1")
    golden(caught.value)


def test_launches_on_vms_with_other_settings_do_not_count_as_made(golden: Golden) -> None:
    def on(cpus: str, host: str, cookie: str) -> dict[str, str]:
        return {"cpus": cpus, "esxi_host": host, "numa.autosize.cookie": cookie}

    made = run()
    assert made.cluster is not None
    made = replace(made, cluster=replace(made.cluster, vm_settings={"node-1": on("8", "esx-1", "80")}))
    machines = {"node-0": Machine(), "node-1": Machine(settings=on("16", "esx-2", "160"))}
    with pytest.raises(NotPossible) as caught:
        check_conditions([made], replace(HERE, machines=machines))
    assert (caught.value.code, caught.value.target) == ("record.other-conditions", "synthetic-allreduce-2-1")
    golden(caught.value)
    moved = {"node-0": Machine(), "node-1": Machine(settings=on("8", "esx-2", "160"))}
    check_conditions([made], replace(HERE, machines=moved))


def test_fewer_and_more_of_the_same_nodes_are_no_difference() -> None:
    lost = replace(run(), placement=run().placement[:1])
    check_conditions([run(4), lost], HERE)


def test_a_launch_that_failed_keeps_nobody_from_mending_what_it_failed_of() -> None:
    check_conditions([replace(run(interface="eth1", digest="sha256:bb"), outcome=Outcome.FAILED)], HERE)


def test_what_an_older_record_does_not_tell_is_not_held_against_it() -> None:
    check_conditions([replace(run(interface=""), cluster=None, placement=())], HERE)
