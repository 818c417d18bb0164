"""The whole story of a cluster, typed as a script types it."""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.conftest import FILES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.e2e.conftest import Lab, Shell
    from tests.golden import Golden

pytestmark = [pytest.mark.e2e, pytest.mark.lab]


@pytest.mark.parametrize("topology", FILES)
def test_a_cluster_is_made_kept_and_unmade(
    topology: str, lab: Callable[[str], Lab], shell: Shell, golden: Golden
) -> None:
    site = lab(topology)
    before = site.vms

    checked = shell.vsml("check")
    assert (checked.status, checked.err) == (0, "")

    differing = shell.vsml("plan", "--detailed-exitcode")
    assert differing.status == 7
    assert "power on" in differing.out

    made = shell.vsml("provision", "--yes")
    assert made.status == 0, made.err
    assert "done: train " in made.out
    assert "clone" in made.err

    again = shell.vsml("provision", "--yes", "--detailed-exitcode")
    assert again.did_nothing
    golden(again.out.splitlines()[-1])

    assert shell.vsml("plan", "--detailed-exitcode").status == 0

    seen = shell.vsml("status", "-o", "json")
    assert seen.status == 0
    assert any(message.startswith("lab: ") for message in seen.document["messages"])
    nodes = seen.document["data"]["nodes"]
    assert seen.document["data"]["matches_file"] is True
    assert {node["state"] for node in nodes} == {"running"}
    assert all(node["gpus"] and node["nic"] for node in nodes)

    gone = shell.vsml("destroy", "--yes")
    assert gone.status == 0, gone.err
    assert gone.out.splitlines()[-1].startswith("done: train ")
    assert site.vms == before
    none_left = shell.vsml("destroy", "--yes")
    assert none_left.did_nothing
    golden(none_left.out)


def test_a_saved_plan_is_carried_out_once_and_refused_when_the_site_moved_on(
    lab: Callable[[], Lab], shell: Shell
) -> None:
    lab()
    assert shell.vsml("plan", "--save", "monday.plan").status == 0
    made = shell.vsml("provision", "--plan", "monday.plan", "--yes")
    assert made.status == 0, made.err
    stale = shell.vsml("provision", "--plan", "monday.plan", "--yes", "-o", "json")
    assert stale.status == 3
    assert stale.document["errors"][0]["code"] == "plan.stale"


def test_inventory_names_who_uses_a_gpu_and_draws_the_pcie_tree(lab: Callable[[], Lab], shell: Shell) -> None:
    lab()
    tables = shell.vsml("inventory", "--lab", "default")
    assert tables.status == 0, tables.err
    assert re.search(r"esx-02\.lab\.test\s+0000:3b:00\.0\s+NVIDIA A100-PCIE-40GB\s.*etl-7", tables.out)
    drawing = shell.vsml("inventory", "--tree")
    assert "PCIe switch 0000:37:00.0" in drawing.out
    assert "\x1b" not in drawing.out


def test_doctor_says_where_the_connection_comes_from_and_never_the_secret(lab: Callable[[], Lab], shell: Shell) -> None:
    site = lab()
    ended = shell.vsml("doctor")
    assert ended.status == 0, ended.err
    assert site.told["password_file"] in ended.out
    assert "8.0.3" in ended.out
    assert site.password not in ended.out + ended.err


def test_a_failed_vm_hides_no_others_and_the_next_run_mends_it(lab: Callable[[], Lab], shell: Shell) -> None:
    site = lab()
    site.control(
        "faults", {"method": "CloneVM_Task", "fault": "NoPermission", "kind": "task", "name": "node-02", "count": 1}
    )
    part = shell.vsml("provision", "--yes", "-o", "json")
    assert part.status == 4
    assert part.document["status"] == "partial"
    assert part.document["errors"][0]["code"] == "provision.incomplete"
    states = {name: vm["powered_on"] for name, vm in site.vms.items() if name.startswith("node-")}
    assert states == {"node-01": True, "node-03": True, "node-04": True}
    mended = shell.vsml("provision", "--yes")
    assert mended.status == 0, mended.err


def test_the_status_of_a_cluster_that_drifted_says_what_lacks(lab: Callable[[], Lab], shell: Shell) -> None:
    lab()
    shell.vsml("provision", "--yes")
    bigger = (shell.folder / "cluster.toml").read_text().replace("cpus = 16", "cpus = 20")
    shell.write("cluster.toml", bigger)
    drifted = shell.vsml("status", "--detailed-exitcode", "-o", "json")
    assert drifted.status == 7
    assert drifted.document["data"]["matches_file"] is False
    refused = shell.vsml("provision", "--yes", "-o", "json")
    assert refused.status == 3
    assert refused.document["errors"][0]["code"] == "plan.interrupts"
    assert "--allow-downtime" in refused.document["errors"][0]["hint"]
    assert shell.vsml("provision", "--yes", "--allow-downtime").status == 0
    assert shell.vsml("status", "--detailed-exitcode").status == 0


def test_no_vm_is_stopped_for_what_cannot_be_and_one_whose_change_fails_runs_again(
    lab: Callable[[], Lab], shell: Shell
) -> None:
    site = lab()
    file = (shell.folder / "cluster.toml").read_text()
    file = file.replace("node-[01-04]", "node-[01-02]")
    shell.write("cluster.toml", file)
    assert shell.vsml("provision", "--yes").status == 0

    shell.write("cluster.toml", file.replace("cpus = 16", "cpus = 16\nhardware_version = 22"))
    for command in (("plan",), ("provision", "--yes", "--allow-downtime")):
        refused = shell.vsml(*command, "-o", "json")
        assert (refused.status, refused.document["errors"][0]["code"]) == (3, "placement.infeasible")

    shell.write("cluster.toml", file.replace('folder = "train"', 'folder = "other"'))
    assert shell.vsml("provision", "--yes").status == 0
    assert shell.vsml("plan", "--detailed-exitcode").status == 0

    shell.write("cluster.toml", file.replace('folder = "train"', 'folder = "other"').replace("cpus = 16", "cpus = 20"))
    site.control(
        "faults", {"method": "ReconfigVM_Task", "fault": "GenericVmConfigFault", "kind": "task", "name": "node-01"}
    )
    part = shell.vsml("provision", "--yes", "--allow-downtime", "-o", "json")
    assert part.status == 4
    assert part.document["data"]["off"] == []
    assert {name: vm["powered_on"] for name, vm in site.vms.items() if name.startswith("node-")} == {
        "node-01": True,
        "node-02": True,
    }


def test_a_new_cluster_begins_with_init(shell: Shell) -> None:
    begun = shell.vsml("init", "new.toml")
    assert begun.status == 0, begun.err
    unfilled = shell.vsml("check", "new.toml")
    assert unfilled.status == 2
    assert "new.toml:" in unfilled.err
    refused = shell.vsml("init", "new.toml")
    assert refused.status == 2
    assert stat.S_ISREG((shell.folder / "new.toml").stat().st_mode)


def test_the_lab_can_be_used_with_other_clients_by_eval(lab: Callable[[], Lab], shell: Shell) -> None:
    site = lab()
    printed = shell.vsml("lab", "env")
    assert site.password not in printed.out
    exports = dict(re.findall(r"^export (\w+)=(.*)$", printed.out, re.MULTILINE))
    assert set(exports) == {"GOVC_URL", "GOVC_USERNAME", "GOVC_PASSWORD", "GOVC_TLS_CA_CERTS"}
    assert Path(exports["GOVC_TLS_CA_CERTS"]).is_file()


def test_a_plan_explains_its_placements_when_asked(lab: Callable[[], Lab], shell: Shell) -> None:
    lab()
    ended = shell.vsml("plan", "--explain")
    assert ended.status == 0
    explained = shell.vsml("plan", "--explain", "-o", "json").document["data"]["explained"]
    assert [len(each["losers"]) for each in explained] == [3, 3, 3, 3]
    assert all(f"{each['node']} on {each['host']}: {each['why']}" in ended.out for each in explained)
    assert explained[0]["cost"] in ended.out
