"""Edits of a cluster's file, one after another on one lab: each ends in an empty plan, and its last line is true."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from tests.integration import labs
from tests.integration.labs import cluster_file
from vsphere_ml.cli.views.cluster import plan as view
from vsphere_ml.cli.wiring.site_wiring import SystemClock
from vsphere_ml.config.load import load_text
from vsphere_ml.core.model.marks import LOCK_FOLDER, is_marked
from vsphere_ml.core.plan.anti_affinity import rule_name
from vsphere_ml.core.ports.vcenter import Scope
from vsphere_ml.flows.cluster.destroy import destroy
from vsphere_ml.flows.cluster.provision import ProvisionTask, provision
from vsphere_ml.flows.consent import Consent
from vsphere_ml.flows.run_context import RunContext
from vsphere_ml.lab import server
from vsphere_ml.lab.server import topology_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.model.inventory import Inventory
    from vsphere_ml.core.plan.plan import Plan
    from vsphere_ml.flows.cluster.report import Report
    from vsphere_ml.vsphere.gateway import Gateway

pytestmark = pytest.mark.lab

NAME = "edits"
FIRST = cluster_file(NAME, cluster="gpu", gpu='{ profile = "A100-40C" }', nodes=2)
# What each edit replaces in the file as the edits before it have left it.
EDITS = {
    "nodes are added": ("edits-[1-2]", "edits-[1-4]"),
    "a node is removed": ("edits-[1-4]", "edits-[1-3]"),
    "a node is renamed": ('"edits-[1-3]"', '["edits-1", "edits-2", "edits-9"]'),
    "the cluster is moved to another folder": ('folder = "edits"', 'folder = "moved/edits"'),
    "more memory": ('memory = "32GiB"', 'memory = "48GiB"'),
    "more CPUs": ("cpus = 2", "cpus = 4"),
    "a larger disk": ("cpus = 4", 'disk = "120GiB"\ncpus = 4'),
    "another profile": ("A100-40C", "A100-20C"),
    "another port group": ('network = { port_group = "vm-mgmt" }', 'network = { port_group = "roce" }'),
    "another kind of NIC": ('nic = { model = "ConnectX-6 Dx",', 'nic = { kind = "sriov", model = "ConnectX-6 Dx",'),
    "a playbook": ("[[nodes]]", '[guest]\nplaybooks = ["base"]\n[[nodes]]'),
    "another template": ("ubuntu-22.04-gpu", "ubuntu-24.04-gpu"),
}
PART = re.compile(r"(\d+) to (create|change|delete)(?: \(([^)]*)\))?")
KIND = re.compile(r"(\d+) (VM|rule|folder)")


def last_line(plan: Plan) -> str:
    console = Console(width=1000, color_system=None)
    with console.capture() as captured:
        console.print(view.summary(plan))
    return captured.get()


def counted(line: str) -> dict[str, Counter[str]]:
    """Return what a plan's last line says by what becomes of it: how many VMs, rules and folders."""
    answers: dict[str, Counter[str]] = {}
    for number, action, kinds in PART.findall(line):
        answers[action] = Counter({kind: int(count) for count, kind in KIND.findall(kinds)})
        assert answers[action].total() == int(number), line
    return answers


def things(site: Inventory) -> dict[tuple[str, str], object]:
    """Return what the lab has of the cluster: by kind and name, with what can be seen of it."""
    vms = {("VM", vm.name): vm for vm in site.vms if is_marked(vm, NAME)}
    rules = {("rule", rule.name): rule for each in site.clusters for rule in each.rules if rule.name == rule_name(NAME)}
    ours = (each for each in site.folders if each.cluster_mark == NAME and LOCK_FOLDER not in each.path)
    return {**vms, **rules, **{("folder", each.path): each for each in ours}}


def differences(before: Inventory, after: Inventory) -> dict[str, Counter[str]]:
    old, new = things(before), things(after)
    return {
        "create": Counter(kind for kind, _ in new.keys() - old.keys()),
        "delete": Counter(kind for kind, _ in old.keys() - new.keys()),
        "change": Counter(kind for kind, name in old.keys() & new.keys() if old[kind, name] != new[kind, name]),
    }


class Edited:
    """A cluster whose file is edited again and again."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway, self.text = gateway, FIRST

    def site(self) -> Inventory:
        return self.gateway.read_site(Scope(datacenter="lab-dc", cluster="gpu", owner=NAME))

    def provision(self, *, dry_run: bool = False) -> Report:
        return provision(
            RunContext(load_text(self.text), self.gateway, lambda _: None, SystemClock()),
            approve=lambda _: True,
            task=ProvisionTask(consent=Consent(downtime=True, deletion=True), dry_run=dry_run),
        )

    def edit(self, old: str, new: str) -> None:
        assert self.text.count(old) == 1, old
        self.text = self.text.replace(old, new)

    def host_of(self, name: str) -> str:
        site = self.site()
        (ref,) = (vm.host for vm in site.vms if vm.name == name)
        return next(host.name for host in site.hosts if host.ref == ref)

    def destroy(self, name: str) -> Report:
        run = RunContext(load_text(self.text), self.gateway, lambda _: None, SystemClock())
        return destroy(run, approve=lambda _: True, only=(name,))


@pytest.fixture(scope="module")
def edited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Edited]:
    """Return the cluster of the file before the first edit, on a lab that has two templates."""
    folder = tmp_path_factory.mktemp("lab")
    site = topology_file(server.DEFAULT_TOPOLOGY).read_text()
    more = re.search(r"^\[\[template\]\]\n(?:[^\[#].*\n)+", site, re.MULTILINE)
    assert more is not None
    topology = folder / "two-templates.toml"
    topology.write_text(f"{site}\n{more[0].replace('22.04', '24.04')}")
    with labs.running(folder, str(topology)) as lab:
        gateway = labs.gateway(lab)
        made = Edited(gateway)
        assert made.provision().done
        yield made
        gateway.close()


def carry_out(edited: Edited, edit: str) -> None:
    """Provision what the file says now, and hold its last line against the lab; the plan is empty after it."""
    before = edited.site()
    report = edited.provision()
    assert report.done, (edit, report.error and report.error.details)
    answers = counted(last_line(report.plan))
    seen = differences(before, edited.site()) if report.plan else {}
    assert {action: +kinds for action, kinds in answers.items()} == {
        action: +kinds for action, kinds in seen.items()
    }, edit
    again = edited.provision(dry_run=True)
    assert not again.plan, edit
    assert not again.drift, edit


def test_each_edit_ends_in_an_empty_plan_whose_last_line_is_what_the_lab_shows(edited: Edited) -> None:
    for edit, (old, new) in EDITS.items():
        edited.edit(old, new)
        carry_out(edited, edit)


def test_a_node_that_the_file_moves_to_another_host_stays_until_it_is_made_anew(edited: Edited) -> None:
    """vsml moves no VM between hosts, since what a node holds is its host's: the plan is empty, and says so."""
    carry_out(edited, "nothing")
    taken = {edited.host_of(vm.name) for vm in edited.site().vms if is_marked(vm, NAME)}
    other = next(host.name for host in edited.site().hosts if host.name not in taken)
    edited.edit("[[nodes]]\n", f'[[nodes]]\nhosts = {{ edits-1 = "{other}" }}\n')
    found = edited.provision()
    assert not found.plan
    assert [(each.code, each.target) for each in found.drift] == [("placement.wrong-host", "edits-1")]
    assert edited.destroy("edits-1").done
    carry_out(edited, "moved to another host")
    assert edited.host_of("edits-1") == other
