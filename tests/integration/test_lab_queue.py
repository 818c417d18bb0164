"""Clones that vCenter queues: so many as a host takes part in run, and the time of the others does not count."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fakes.clock import FakeClock
from tests.integration import labs
from vsphere_ml.config.load import load_text
from vsphere_ml.core.plan.changes import CloneVm
from vsphere_ml.core.plan.outcome import Done
from vsphere_ml.core.ports.events import Dequeued, Queued
from vsphere_ml.flows.cluster.executor import ApplyLimits
from vsphere_ml.flows.cluster.provision import ProvisionTask, provision
from vsphere_ml.flows.run_context import RunContext
from vsphere_ml.lab import control
from vsphere_ml.lab.server import topology_file

if TYPE_CHECKING:
    from pathlib import Path

    from vsphere_ml.core.ports.events import Event
    from vsphere_ml.lab.state import Lab

pytestmark = pytest.mark.lab
NODES = 3


class Hours(list["Event"]):
    """A listener for which a clone takes two hours: they pass when it has ended, and none ends before all are begun."""

    def __init__(self, lab: Lab) -> None:
        super().__init__()
        self.lab, self.clock = lab, FakeClock()
        self._let_clones_take(3_600_000)

    def _let_clones_take(self, ms: int) -> None:
        control.ask(self.lab, "POST", "delays", {"CloneVM_Task": ms})

    def __call__(self, event: Event, /) -> None:
        self.append(event)
        if isinstance(event, Queued) and len(self.clones(Queued)) == NODES - 1:
            self._let_clones_take(300)
        if isinstance(event, Done) and isinstance(event.change, CloneVm):
            self.clock.sleep(2 * 3600)

    def clones(self, kind: type[Queued | Dequeued | Done]) -> set[str]:
        return {each.change.vm for each in self if isinstance(each, kind) and isinstance(each.change, CloneVm)}


def test_hours_in_vcenters_queue_do_not_end_a_clone(tmp_path: Path) -> None:
    spec = load_text(labs.cluster_file("queue", cluster="gpu", gpu='{ profile = "A100-40C" }', nodes=NODES))
    topology = tmp_path / "one-at-a-time.toml"
    text = topology_file("quad-8.0u3").read_text()
    topology.write_text(text.replace("[[model]]\n", "[[model]]\nfull_clones = 1\n", 1))
    with labs.running(tmp_path / "state", str(topology)) as lab:
        heard = Hours(lab)
        vcenter = labs.gateway(lab)
        try:
            report = provision(
                RunContext(spec, vcenter, heard, heard.clock),
                approve=lambda _: True,
                task=ProvisionTask(rate=ApplyLimits(clone_s=3 * 3600, change_s=24 * 3600)),
            )
        finally:
            vcenter.close()
    assert report.done
    assert len(heard.clones(Queued)) == NODES - 1
    assert heard.clones(Dequeued) <= heard.clones(Queued)  # one may run and end between two answers
    assert len(heard.clones(Done)) == NODES
