"""Small sites, finished nodes, and what is asked of plans and refusals."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import pytest

from tests.fakes.pictures import (
    quad_8u3,
    r750xa,
)
from tests.fakes.requirements import cluster
from tests.unit.core.applied import applied
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.model.inventory import DirectPathGpu, Inventory, Vm, VmSettings
from vsphere_ml.core.placement.solve import solve
from vsphere_ml.core.plan.diff import diff

if TYPE_CHECKING:
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.plan.changes import Change
    from vsphere_ml.core.plan.plan import Plan


C = TypeVar("C")


def refused(spec: ClusterSpec, site: Inventory) -> NotPossible:
    with pytest.raises(NotPossible) as caught:
        solve(spec, site)
    return caught.value


def each_host(site: Inventory, **knobs: object) -> Inventory:
    return replace(site, hosts=tuple(replace(host, **knobs) for host in site.hosts))  # type: ignore[arg-type]


def provisioned(spec: ClusterSpec, site: Inventory) -> Inventory:
    return applied(diff(spec, solve(spec, site), site).changes, site)


def one_host(**knobs: object) -> Inventory:
    return each_host(quad_8u3(hosts=1, taken=False), **knobs)


def planned(spec: ClusterSpec, site: Inventory) -> Plan:
    return diff(spec, solve(spec, site), site)


def only(plan: Plan, kind: type[C]) -> C:
    (found,) = [change for change in plan.changes if isinstance(change, kind)]
    return found


def kinds(plan: Plan) -> list[type[Change]]:
    return [type(change) for change in plan.changes]


def one_node(*, template_version: int = 19) -> Inventory:
    site = quad_8u3(hosts=1, taken=False, template_version=template_version)
    return applied(planned(cluster(1), site).changes, site)


def seen(site: Inventory, name: str = "node-1") -> VmSettings:
    settings = next(each.settings for each in site.vms if each.name == name)
    assert settings is not None
    return settings


def changed(site: Inventory, name: str = "node-1", **knobs: object) -> Inventory:
    """Return the site with a VM's properties, or else its settings, changed behind our back."""
    both = VmSettings.__dataclass_fields__
    own = {key: value for key, value in knobs.items() if key not in both}
    rest = {key: value for key, value in knobs.items() if key not in own}

    def edit(each: Vm) -> Vm:
        assert each.settings is not None
        return replace(each, settings=replace(each.settings, **rest), **own)  # type: ignore[arg-type]

    return replace(site, vms=tuple(edit(each) if each.name == name else each for each in site.vms))


def direct(*, active: bool = True, labels: tuple[str, ...] = ("", "", "", "")) -> Inventory:
    """Return one host whose four A100 are passed through, so that it offers no vGPU."""
    gpus = tuple(
        DirectPathGpu(
            address=place, vendor=0x10DE, device=0x20F1, name="GA100", active=active, label=label, system_id="system"
        )
        for place, label in zip((each.address for each in r750xa(1).gpus), labels, strict=True)
    )
    return one_host(gpus=(), groups=(), profiles=(), passthrough_gpus=gpus)
