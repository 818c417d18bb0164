"""How often vCenter is called for a provision: a number that does not hang on the machine's speed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration import labs
from vsphere_ml.config.load import load_text
from vsphere_ml.lab import control
from vsphere_ml.vsphere.changes import task_runner

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.lab
NODES = 8
# Beside waits and reads; three are for the cluster's folder, one for a line in vCenter's events. pyVmomi alone, which
# makes no folder, plans nothing and reads nothing back, makes 78 calls at most (`benchmarks/bare_provision.py`), half
# of them to look its objects up.
OTHERS = 53
READS = 12  # and one for each group of VMs that are ready at the same time


def test_eight_vms_take_no_more_calls_than_a_bare_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_runner, "PROGRESS_S", 3600)  # a slow machine has more time to ask for progress
    file = labs.cluster_file(
        "calls", cluster="gpu", gpu='{ profile = "A100-40C" }', nic='{ kind = "none" }', nodes=NODES
    )
    with labs.running(tmp_path / "state") as lab:
        vcenter = labs.gateway(lab)
        try:
            assert labs.brought(load_text(file), lab, vcenter).done
        finally:
            vcenter.close()
        calls = control.ask(lab, "GET", "calls")
    assert calls["CloneVM_Task"] == calls["PowerOnVM_Task"] == NODES
    waits, filters, beats = calls["WaitForUpdatesEx"], calls["CreateFilter"], calls["CurrentTime"] - 1
    reads = calls["RetrievePropertiesEx"]
    assert sum(calls.values()) - waits - filters - reads - 2 * beats <= OTHERS
    assert reads <= READS + NODES
    # Each wait tells of a task that ended, or of the tasks of a new filter.
    assert waits <= 2 * NODES + filters
    assert filters <= NODES + 2
