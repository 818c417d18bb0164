from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.fakes.pictures import settings, template
from tests.fakes.requirements import cluster
from vsphere_ml.core.model.spec import FirstBootBy, GuestAccess, HostKeys
from vsphere_ml.core.rules.template_facts import TemplateFact, TemplateVerdict, template_facts

if TYPE_CHECKING:
    from vsphere_ml.core.model.inventory import Vm

SILENT = {"isolation.tools.setinfo.disable": "true"}
CLONE, HARDWARE, TOOLS, TELL = range(4)


def source(version: int = 20, **knobs: Any) -> Vm:
    return replace(template("ubuntu", version), settings=settings(**{"tools_version": 12389, **knobs}))


def facts(vm: Vm, **guest: Any) -> list[TemplateFact]:
    return list(template_facts(vm, cluster(1, guest=GuestAccess(**guest))))


def test_a_template_that_has_it_all_is_ready_but_for_what_only_a_boot_tells() -> None:
    found = facts(source())
    assert {each.verdict for each in found[: TELL + 1]} == {TemplateVerdict.READY}
    assert {each.verdict for each in found[TELL + 1 :]} == {TemplateVerdict.UNKNOWN}
    assert all("`" in each.hint for each in found[TELL + 1 :])


@pytest.mark.parametrize(
    ("fact", "knobs", "guest", "verdict"),
    [
        (CLONE, {"firmware": "bios"}, {}, TemplateVerdict.MISSING),
        (TOOLS, {"tools_version": 0}, {}, TemplateVerdict.UNKNOWN),
        (TOOLS, {"tools_version": 0}, {"first_boot": FirstBootBy.CUSTOMIZATION}, TemplateVerdict.MISSING),
        (TELL, {"extra_config": SILENT}, {}, TemplateVerdict.MISSING),
        (TELL, {"extra_config": SILENT}, {"host_keys": HostKeys.FIRST_USE}, TemplateVerdict.READY),
    ],
)
def test_what_vcenter_knows_of_is_judged(
    fact: int, knobs: dict[str, Any], guest: dict[str, Any], verdict: TemplateVerdict
) -> None:
    assert facts(source(**knobs), **guest)[fact].verdict is verdict


def test_an_old_hardware_version_is_upgraded_in_clones() -> None:
    found = facts(source(15))[HARDWARE]
    assert (found.verdict, found.observed.split(",")[0]) == (TemplateVerdict.READY, "15")
    assert found.observed != facts(source(20))[HARDWARE].observed


def test_what_is_inside_is_asked_only_where_it_matters() -> None:
    plain = len(facts(source()))
    asked = facts(source(), first_boot=FirstBootBy.CLOUD_INIT, playbooks=("base",))
    assert len(asked) == plain + 2
