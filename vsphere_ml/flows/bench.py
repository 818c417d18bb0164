"""`vsml bench`: launches across the nodes' guests, each proven and recorded as soon as it has ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vsphere_ml.bench import matrix, store, survey
from vsphere_ml.bench.events import Launching, Measured, Planning
from vsphere_ml.bench.evidence import Wire
from vsphere_ml.bench.record import Workload
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.guest import Peer
from vsphere_ml.flows import boot
from vsphere_ml.flows.launch import Ground, Means, clean_slate, in_each, links, made

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from vsphere_ml.bench.events import BenchListener
    from vsphere_ml.bench.matrix import Wish
    from vsphere_ml.bench.record import Configuration, Run
    from vsphere_ml.core.errors import VsmlError
    from vsphere_ml.core.events import Listener
    from vsphere_ml.core.inventory import Inventory
    from vsphere_ml.core.ports import Clock, Guests, VCenter
    from vsphere_ml.core.spec import ClusterSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmarked:
    """What came of all launches, those included that the record already had."""

    cluster: str
    folder: Path
    runs: tuple[Run, ...]
    errors: tuple[VsmlError, ...] = ()


def bench(
    spec: ClusterSpec,
    vcenter: VCenter,
    guests: Guests,
    wish: Wish,
    *,
    means: Means,
    folder: Path,
    tell: Listener,
    tell_bench: BenchListener,
    clock: Clock,
    only: Collection[str] = (),
) -> Benchmarked:
    """Make every launch of the wish that the record in `folder` lacks, and return all of them.

    A launch that fails is recorded as such and does not keep the others back. Raises what stands in the way of all.
    """
    ground = _ground(spec, vcenter, guests, wish, means, folder, tell, tell_bench, clock, only)
    wish = matrix.over_mpi(wish, ground.runtime)
    recorded = store.read(folder) if any(folder.glob("*.json")) else ()
    planned = matrix.plan(wish, recorded)
    tell_bench(Planning(launches=planned))
    to_make = [each for each in planned if each.done is None]
    runs: list[Run] = [each.done for each in planned if each.done is not None]
    errors: list[VsmlError] = []
    calibrated: dict[int, float | None] = {}  # by number of nodes
    for number, each in enumerate(to_make, start=1):
        clean_slate(ground)
        tell_bench(Launching(launch=each, number=number, of=len(to_make)))
        run, error = made(ground, wish, each, _wire(ground, each.configuration, calibrated))
        store.write(run, folder)
        tell_bench(Measured(launch=each, run=run))
        runs.append(run)
        errors += [error] if error else []
    return Benchmarked(cluster=spec.name, folder=folder, runs=tuple(runs), errors=tuple(errors))


def _wire(ground: Ground, asked: Configuration, calibrated: dict[int, float | None]) -> Wire:
    """Return what the nodes have between them, measured once for each number of nodes and whenever it is asked for."""
    if asked.nodes in calibrated and asked.workload is not Workload.LINK:
        return Wire(bytes_per_s=calibrated[asked.nodes])
    measured = links(ground, asked.nodes)
    calibrated[asked.nodes] = min((each.bytes_per_s for each in measured), default=None)
    return Wire(links=measured, bytes_per_s=calibrated[asked.nodes])


def _ground(  # noqa: PLR0917 - each is a thing of its own
    spec: ClusterSpec,
    vcenter: VCenter,
    guests: Guests,
    wish: Wish,
    means: Means,
    folder: Path,
    tell: Listener,
    tell_bench: BenchListener,
    clock: Clock,
    only: Collection[str],
) -> Ground:
    """Return where the launches go to; raises the first thing that stands in their way, before anything is written."""
    site = boot.first_look(spec, vcenter, tell, clock)
    found = boot.up(spec, site, vcenter, guests, boot.within(0.0, clock), only=only)
    for error in found.errors.values():
        raise error
    places = found.places[: max(wish.nodes)]
    if len(places) < max(wish.nodes):
        raise NotPossible(
            f"{max(wish.nodes)} nodes are asked for, and the cluster file has {len(places)}",
            code="bench.too-few-nodes",
            target=spec.name,
            hint=f"--nodes {len(places)}",
        )
    peers = tuple(Peer(name=place.name, address=place.address, slots=wish.slots) for place in places)
    asked = survey.probes(means.tools)
    answers = in_each(guests, places, lambda shell: survey.read(shell.name, shell.ask(asked)))
    surveyed = tuple(answers[place.name] for place in places)
    interface = survey.interface(surveyed, peers, means.interface)
    return Ground(
        spec=spec,
        guests=guests,
        clock=clock,
        tell=tell_bench,
        means=means,
        places=places,
        peers=survey.on(surveyed, peers, interface),
        hosts=_hosts(site, {place.name for place in places}),
        surveyed=surveyed,
        runtime=survey.runtime(surveyed, means.tools, horovod=_trains(wish)),
        interface=interface,
        folder=folder,
    )


def _trains(wish: Wish) -> bool:
    """Return whether anything of the wish needs Horovod."""
    return not set(wish.workloads) <= {Workload.LINK, Workload.NCCL}


def _hosts(inventory: Inventory, names: Collection[str]) -> dict[str, str]:
    """Return the ESXi host of each node's VM, as vCenter tells it."""
    return {vm.name: inventory.host(vm.host).name for vm in inventory.vms if vm.name in names and vm.host}
