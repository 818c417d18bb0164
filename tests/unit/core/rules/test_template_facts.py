from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.fakes.pictures import settings, template
from tests.fakes.requirements import cluster
from vsphere_ml.core.diagnostics import Diagnostic, Severity
from vsphere_ml.core.model.spec import FirstBootBy, GuestAccess, HostKeys
from vsphere_ml.core.rules.template_facts import template_facts

if TYPE_CHECKING:
    from vsphere_ml.core.model.inventory import Vm

SILENT = {"isolation.tools.setinfo.disable": "true"}
CLONE, HARDWARE, TOOLS, TELL = range(4)


def source(version: int = 20, **knobs: Any) -> Vm:
    return replace(template("ubuntu", version), settings=settings(**{"tools_version": 12389, **knobs}))


def facts(vm: Vm, **guest: Any) -> list[Diagnostic]:
    return list(template_facts(vm, cluster(1, guest=GuestAccess(**guest))))


def test_a_template_that_has_it_all_is_ready_but_for_what_only_a_boot_tells() -> None:
    found = facts(source())
    assert {each.severity for each in found[: TELL + 1]} == {Severity.OK}
    assert {each.severity for each in found[TELL + 1 :]} == {Severity.UNKNOWN}
    assert all("`" in each.hint for each in found[TELL + 1 :])


@pytest.mark.parametrize(
    ("fact", "knobs", "guest", "verdict"),
    [
        (CLONE, {"firmware": "bios"}, {}, Severity.ERROR),
        (TOOLS, {"tools_version": 0}, {}, Severity.UNKNOWN),
        (TOOLS, {"tools_version": 0}, {"first_boot": FirstBootBy.CUSTOMIZATION}, Severity.ERROR),
        (TELL, {"extra_config": SILENT}, {}, Severity.ERROR),
        (TELL, {"extra_config": SILENT}, {"host_keys": HostKeys.FIRST_USE}, Severity.OK),
    ],
)
def test_what_vcenter_knows_of_is_judged(
    fact: int, knobs: dict[str, Any], guest: dict[str, Any], verdict: Severity
) -> None:
    assert facts(source(**knobs), **guest)[fact].severity is verdict


def test_an_old_hardware_version_is_upgraded_in_clones() -> None:
    found = facts(source(15))[HARDWARE]
    assert (found.severity, found.message.split(",")[0]) == (Severity.OK, "15")
    assert found.message != facts(source(20))[HARDWARE].message


def test_what_is_inside_is_asked_only_where_it_matters() -> None:
    plain = len(facts(source()))
    asked = facts(source(), first_boot=FirstBootBy.CLOUD_INIT, playbooks=("base",))
    assert len(asked) == plain + 2
