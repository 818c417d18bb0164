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
# Beside what waits for tasks, three of them for the folder of the cluster. pyVmomi alone, which makes no folder, plans
# nothing and reads nothing back, makes as many (`benchmarks/bare_provision.py`), 39 of them to look its objects up.
OTHERS = 65


def test_eight_vms_take_no_more_calls_than_a_bare_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_runner, "_PROGRESS_S", 3600)  # a slow machine has more time to ask for progress
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
    assert sum(calls.values()) - waits - filters - 2 * beats <= OTHERS
    # Each wait tells of a task that ended, or of the tasks of a new filter.
    assert waits <= 2 * NODES + filters
    assert filters <= NODES + 2
