"""What commands show on terminals of 60, 80 and 120 columns: no line is too long, and no name or address is broken."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.fakes import pictures
from tests.fakes.requirements import cluster
from tests.fakes.site import FakeVCenter
from tests.unit.cli.views.bench.screens import SCREENS as BENCH
from tests.unit.cli.views.cluster.test_report import PARTIAL
from tests.unit.cli.views.cluster.test_report import plan as planned
from tests.unit.cli.views.guests.screens import SCREENS as GUESTS
from tests.unit.cli.views.guests.test_verify import evidence
from tests.unit.cli.views.jobs.screens import SCREENS as JOBS
from tests.unit.cli.views.lab.screens import SCREENS as LAB
from tests.unit.cli.views.site.screens import SCREENS as SITE
from tests.unit.core.sites import provisioned
from tests.unit.flows.hosts_rig import existing
from vsphere_ml.cli.options import GlobalOptions
from vsphere_ml.cli.terminal import console, show
from vsphere_ml.cli.views.cluster import capacity, clusters, explanation, log, nodes, plan, report, status
from vsphere_ml.cli.views.guests import verify
from vsphere_ml.cli.views.layout.columns import NOT_SHOWN
from vsphere_ml.cli.views.site import ats_text, catalogue, inventory, rules, tree
from vsphere_ml.cli.views.site import profiles as profiles_view
from vsphere_ml.core.catalog.boards import BY_CODE
from vsphere_ml.core.model.inventory import RunningTask, VmRef
from vsphere_ml.core.model.placement import Locality
from vsphere_ml.core.placement.explain import explain
from vsphere_ml.core.placement.headroom import headroom
from vsphere_ml.core.placement.solve import find_solution, solve
from vsphere_ml.core.plan.diff import diff
from vsphere_ml.core.plan.plan import Plan
from vsphere_ml.core.plan.teardown import plan_destroy
from vsphere_ml.core.report.clusters import list_clusters
from vsphere_ml.core.rules.table import RULES
from vsphere_ml.flows.cluster.status import NodeState, NodeStatus, Status
from vsphere_ml.flows.guests.verify import Verification
from vsphere_ml.flows.profiles import profiles

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import RenderableType

    from tests.golden import Golden
    from vsphere_ml.core.model.inventory import Inventory

SPEC, FREE, TAKEN = cluster(2), pictures.quad_8u3(taken=False), pictures.quad_8u3(hosts=1)
UNKNOWN = Locality.UNKNOWN
WIDE = 1000  # of a pipe: nothing is folded
INDENT = 8  # of lines that go on
# A guest's own lines are left to the terminal, and so is what can be typed.
UNFOLDED = {"run", "job stop, some not seen to"}
# Where lines may be broken: between words, and behind what holds two of them together; curves have other widths.
WORD = re.compile(r"[^\s/,;:…│└├─░●]+")


def standing() -> Inventory:
    return provisioned(SPEC, FREE)


def seen_status() -> Status:
    placements = solve(SPEC, FREE).placements
    states = (
        NodeStatus(
            node=each.node.name,
            state=NodeState.RUNNING,
            host=each.host_name,
            address=f"10.0.0.{10 + at}",
            gpus=each.gpus,
            nics=each.nics,
            locality=each.locality,
            placement=each,
        )
        for at, each in enumerate(placements, 1)
    )
    missing = replace(
        next(states), state=NodeState.MISSING, address=None, gpus=(), nics=(), locality=UNKNOWN, drift=("is not there",)
    )
    return Status(
        cluster="train",
        file="cluster.toml",
        about="VMware vCenter Server 8.0.3",
        nodes=(missing, *states),
        pending=Plan(stages=()),
        drift=(),
    )


TASKS = tuple(
    RunningTask(vm=VmRef("vm-1"), vm_name=name, what=f"VirtualMachine.{what}")
    for name, what in (*[("ubuntu-22.04-gpu", "clone")] * 4, ("node-10", "powerOn"), ("node-2", "powerOn"))
)


def journal(number: int) -> dict[str, object]:
    return {
        "time": f"2026-11-27T12:00:0{number % 2}.5Z",
        "user": "svc-vsml",
        "machine": "admin-01",
        "command": "provision",
        "object": f"node-{number}",
        "kind": "PowerOn",
        "what": "power on",
        "differences": [],
        "outcome": ("done", "failed")[number % 2],
        "error": {"message": "a host of the cluster has not enough GPUs for it"} if number % 2 else None,
    }


SCREENS: dict[str, Callable[[], RenderableType]] = {
    **BENCH,
    **GUESTS,
    **JOBS,
    **LAB,
    **SITE,
    "capacity": lambda: capacity.text(SPEC, headroom(SPEC, FREE)),
    "capacity-beside-nodes": lambda: capacity.text(SPEC, headroom(SPEC, provisioned(SPEC, FREE))),
    "check": lambda: nodes.text(SPEC),
    "destroy": lambda: plan.text(plan_destroy(SPEC, standing())),
    "enable-ats --check": lambda: ats_text.report(existing(3).run(dry_run=True), read_only=True, lab=False),
    "inventory": lambda: inventory.text(TAKEN),
    "inventory --tree": lambda: tree.text(TAKEN),
    "list": lambda: clusters.text(standing(), list_clusters(standing())),
    "log": lambda: log.text("train", Path("journal.jsonl"), [journal(1), *map(journal, (2, 4, 6, 8))], 5, 0),
    "plan": lambda: plan.text(diff(SPEC, solve(SPEC, FREE), FREE)),
    "plan --explain": lambda: explanation.text(explain(find_solution(SPEC, FREE))),
    "profiles": lambda: profiles_view.text(profiles(FakeVCenter(TAKEN), None)),
    "profiles --board": lambda: catalogue.text([BY_CODE["A100"]]),
    "provision": lambda: report.text(replace(PARTIAL, plan=planned())),
    "rules list": lambda: rules.table(RULES[:10]),
    "status": lambda: status.text(seen_status()),
    "status, with tasks": lambda: status.text(replace(seen_status(), running=TASKS)),
    "verify": lambda: verify.text(Verification(cluster="train", evidence=evidence(4, node_03="fact 5"), errors={})),
}


def drawn(name: str, width: int) -> str:
    out = io.StringIO()
    screen = console(out, GlobalOptions(no_color=True))
    screen.width = width
    show(screen, SCREENS[name]())
    return out.getvalue()


def words(text: str) -> set[str]:
    """Return the words; a column's title is a field's name where each row becomes lines of its own.

    Which columns are not shown says only a narrow terminal.
    """
    return {word for line in text.casefold().splitlines() if NOT_SHOWN not in line for word in WORD.findall(line)}


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_of_this_width_breaks_no_word(name: str, width: int, golden: Golden) -> None:
    text, whole = drawn(name, width), drawn(name, WIDE)
    broken = words(text) - words(whole) - words(whole.replace(".lab.test", ""))
    longer = " ".join(each for each in whole.casefold().split() if len(each) > width - INDENT)
    assert [each for each in broken if each not in longer] == []
    assert max(map(len, text.splitlines())) <= width or name in UNFOLDED
    golden(text)
