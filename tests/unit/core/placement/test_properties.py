"""Promises that hold on any site: placements never overlap, a plan applied leaves no plan, input order is nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.counted import checked, counted
from tests.fakes.pictures import A100_GROUP, held, quad_8u3, r750xa, seed_7u2, vm
from tests.fakes.requirements import cluster, node
from tests.unit.core.applied import applied
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.model.device_kinds import NicKind
from vsphere_ml.core.model.inventory import ComponentKind, DeviceGroup, Host, Inventory
from vsphere_ml.core.model.placement import NodePlacement, Pairing, Placement, WantPassthrough, WantSriov
from vsphere_ml.core.model.spec import ClusterSpec, GpuRequest, Latency, NicRequest, Source, Spread
from vsphere_ml.core.placement.solve import solve
from vsphere_ml.core.plan.diff import diff
from vsphere_ml.core.plan.teardown import plan_destroy
from vsphere_ml.core.units import Bytes, gib

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

GPUS = ["0000:3b:00.0", "0000:3c:00.0", "0000:b3:00.0", "0000:b4:00.0"]
NICS = [NicKind.AUTO, NicKind.AUTO, NicKind.SRIOV, NicKind.PASSTHROUGH, NicKind.DEVICE_GROUP, NicKind.NONE]


@st.composite
def a_host(draw: st.DrawFn, number: int) -> Host:
    host = r750xa(number)
    sriov = draw(st.booleans())
    vfs = draw(st.sampled_from([1, 2, 8]))
    nics = tuple(replace(nic, sriov_enabled=sriov, vfs=vfs if sriov else 0, passthrough=not sriov) for nic in host.nics)
    part = replace(A100_GROUP.components[1], kind=ComponentKind.SRIOV if sriov else ComponentKind.PASSTHROUGH)
    group = DeviceGroup(name=A100_GROUP.name, components=(A100_GROUP.components[0], part))
    return replace(
        host,
        nics=nics,
        groups=(group,) if draw(st.booleans()) else (),
        maintenance=draw(st.integers(0, 5)) == 0,
        memory=draw(st.sampled_from([gib(256), gib(1024)])),
        max_hardware_version=draw(st.sampled_from([19, 21])),
    )


@st.composite
def sites(draw: st.DrawFn) -> Inventory:
    inventory = quad_8u3(hosts=1, taken=False, template_version=draw(st.sampled_from([17, 19])))
    hosts, others = [], []
    for number in range(1, draw(st.integers(1, 3)) + 1):
        host = draw(a_host(number))
        taken = draw(st.sets(st.sampled_from(GPUS), max_size=2))
        for gpu in sorted(taken):
            other = vm(f"other-{number}-{gpu}", f"vm-{number}-{gpu}", host=host.ref, powered_on=True, memory=gib(32))
            others.append(other)
            host = held(host, other, [gpu])
        hosts.append(host)
    vms = tuple(sorted((*inventory.vms, *others), key=lambda each: each.name))
    return replace(inventory, hosts=tuple(hosts), vms=vms)


@st.composite
def requirements(draw: st.DrawFn) -> ClusterSpec:
    nodes = [
        node(
            f"node-{number}",
            cpus=draw(st.sampled_from([4, 14, 16, 28, 40])),
            memory=draw(st.sampled_from([gib(32), gib(128)])),
            gpu=GpuRequest(profile="A100-40C", count=draw(st.sampled_from([1, 1, 1, 2]))),
            nic=NicRequest(kind=draw(st.sampled_from(NICS)), port_group="roce"),
            latency=draw(st.sampled_from(Latency)),
        )
        for number in range(1, draw(st.integers(1, 5)) + 1)
    ]
    return cluster(tuple(nodes), spread=draw(st.sampled_from(Spread)))


def placed(spec: ClusterSpec, site: Inventory) -> Placement | None:
    try:
        return solve(spec, site)
    except NotPossible as error:
        refusal = error
    says_why(refusal)
    return None


def says_why(refusal: NotPossible) -> None:
    assert refusal.code == "placement.infeasible"
    assert refusal.hint
    assert all(": " in line and not line.endswith(": ") for line in refusal.details)


@counted
@settings(deadline=None)
@given(requirements(), sites())
def test_placements_never_overlap(spec: ClusterSpec, site: Inventory) -> None:
    placement = placed(spec, site)
    if placement is None:
        return
    checked()
    by_host: dict[str, list[NodePlacement]] = {}
    for node_placement in placement.placements:
        by_host.setdefault(node_placement.host, []).append(node_placement)
    for host in site.hosts:
        overlaps_nowhere(host, by_host.get(host.ref, []))


def overlaps_nowhere(host: Host, placements: Sequence[NodePlacement]) -> None:
    gpus = Counter(gpu for placement in placements for gpu in placement.gpus)
    assert not gpus or max(gpus.values()) == 1
    assert not any(gpu.used_by for gpu in host.gpus if gpu.address in gpus)
    functions = Counter(want.physical_function for want in wanted(placements) if isinstance(want, WantSriov))
    functions += Counter(
        placement.nic for placement in placements if placement.pairing is Pairing.DEVICE_GROUP and placement.nic
    )
    for nic in host.nics:
        assert functions[nic.address] <= (nic.vfs if nic.sriov_enabled else 1)
    counter = Counter(want.address for want in wanted(placements) if isinstance(want, WantPassthrough))
    assert not counter or max(counter.values()) == 1
    assert (
        host.memory_reserved + sum(placement.target.memory for placement in placements) <= host.memory or not placements
    )
    for numa in host.numa:
        assert sum(placement.node.cpus for placement in placements if placement.numa_node == numa.id) <= numa.cores
    assert not (host.maintenance and placements)


def wanted(placements: Sequence[NodePlacement]) -> list[object]:
    return [want for placement in placements for want in placement.target.devices]


@counted
@settings(deadline=None)
@given(requirements(), sites(), st.booleans(), st.data())
def test_a_plan_applied_leaves_no_plan_however_often_it_was_cut(
    spec: ClusterSpec,
    site: Inventory,
    from_far: bool,  # noqa: FBT001
    data: st.DataObject,
) -> None:
    placement = placed(spec, site)
    if placement is None:
        return
    checked()
    plan = diff(spec, placement, site)
    assert plan
    cut = data.draw(st.integers(0, len(list(plan.changes))))
    half_done = applied(list(plan.changes)[:cut], site, from_far=from_far)
    rest = diff(spec, solve(spec, half_done), half_done)
    done = applied(rest.changes, half_done, from_far=from_far)
    again = diff(spec, solve(spec, done), done)
    assert not again, again.stages
    assert all(each.powered_on for each in done.vms if each.cluster_mark == spec.name)
    assert sum(each.cluster_mark == spec.name for each in done.vms) == len(spec.nodes)


@counted
@settings(deadline=None)
@given(requirements(), sites(), st.randoms(use_true_random=False))
def test_the_order_of_hosts_and_devices_changes_nothing(
    spec: ClusterSpec, site: Inventory, chance: random.Random
) -> None:
    def shuffled(things: Sequence[object]) -> tuple[object, ...]:
        return tuple(chance.sample(list(things), len(things)))

    hosts = [replace(host, gpus=shuffled(host.gpus), nics=shuffled(host.nics)) for host in site.hosts]  # type: ignore[arg-type]
    other = replace(site, hosts=shuffled(hosts), vms=shuffled(site.vms))  # type: ignore[arg-type]
    one, two = placed(spec, site), placed(replace(spec, nodes=shuffled(spec.nodes)), other)  # type: ignore[arg-type]
    assert (one is None) == (two is None)
    if one is not None and two is not None:
        checked()
        places = [
            {placement.node.name: (placement.host, placement.gpus, placement.nic) for placement in each.placements}
            for each in (one, two)
        ]
        assert places[0] == places[1]


@counted
@settings(deadline=None)
@given(requirements(), sites())
def test_what_was_provisioned_can_be_destroyed_and_nothing_else_is(spec: ClusterSpec, site: Inventory) -> None:
    placement = placed(spec, site)
    if placement is None:
        return
    checked()
    done = applied(diff(spec, placement, site).changes, site)
    gone = applied(plan_destroy(spec, done).changes, done)
    assert gone == site


def test_both_lab_sites_end_with_nothing_to_do() -> None:
    for spec, site in (
        (cluster(4), quad_8u3()),
        (cluster(2, source=Source(template="ubuntu-20.04-gpu")), seed_7u2()),
    ):
        done = applied(diff(spec, solve(spec, site), site).changes, site)
        again = diff(spec, solve(spec, done), done)
        assert not again
        assert not again.diagnostics
        assert done.hosts[0].memory_reserved > Bytes(0)
