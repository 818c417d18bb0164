"""How much CPU placing nodes takes: 64 to 512 VMs on 1,000 hosts of four A100 each, on one core.

    make bench-placement

The site is a value, so nothing but the decision is timed: names resolved, hosts compared, devices chosen. *Alike* are
VMs that all ask for the same; *mixed* ask for four kinds of things, one of them two GPUs. *Stranded* is a cluster that
placing in turn does not bring to an end, so that a search has to: half of the VMs need the NICs of hosts that just
suffice for them, and the other half is larger and goes first.
"""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tests.fakes.pictures import quad_8u3
from tests.fakes.requirements import cluster, nodes
from vsphere_ml.core.model.device_kinds import NicKind
from vsphere_ml.core.model.spec import NicRequest, NodeSpec, Spread
from vsphere_ml.core.placement.solve import solve
from vsphere_ml.core.units import gib

if TYPE_CHECKING:
    from vsphere_ml.core.model.inventory import Inventory

HOSTS = 1000
SIZES = (64, 128, 256, 512)
ROUNDS = 5
LIMIT_S = 1.0  # for the largest
KINDS = ("alike", "mixed", "stranded")


def main() -> int:
    print(
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {platform.platform()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}"
    )
    site = quad_8u3(hosts=HOSTS, taken=False)
    print(f"seconds of CPU for VMs on {HOSTS} hosts, median of {ROUNDS}\n\n{'':18}" + "".join(f"{n:>8}" for n in SIZES))
    largest = [row(kind, spread, site) for kind in KINDS for spread in Spread]
    preserved = max(largest) <= LIMIT_S
    print(f"\n{SIZES[-1]} VMs: at most {max(largest):.2f} s, limit {LIMIT_S} s: {'kept' if preserved else 'NOT kept'}")
    return 0 if preserved else 1


def row(kind: str, spread: Spread, site: Inventory) -> float:
    """Print a row of medians, and return the last one."""
    medians = [statistics.median(measure_placing(kind, count, spread, site) for _ in range(ROUNDS)) for count in SIZES]
    print(f"{kind + ', ' + spread:18}" + "".join(f"{median:8.2f}" for median in medians))
    return medians[-1]


def halves(count: int) -> tuple[NodeSpec, ...]:
    """Return VMs of one GPU each, every second of them larger and without a NIC."""
    plain = [replace(node, cpus=4) for node in nodes(count)]
    alone = NicRequest(kind=NicKind.NONE)
    return tuple(replace(node, memory=gib(90), nic=alone) if at % 2 else node for at, node in enumerate(plain))


def with_nics(count: int, site: Inventory) -> Inventory:
    """Return the site with NICs in so many of its hosts, each with four GPUs."""
    return replace(
        site,
        hosts=tuple(host if at < count else replace(host, nics=(), groups=()) for at, host in enumerate(site.hosts)),
    )


def measure_placing(kind: str, count: int, spread: Spread, site: Inventory) -> float:
    match kind:
        case "alike":
            return timed(nodes(count), spread, site)
        case "mixed":
            return timed(tuple(varied(at, node) for at, node in enumerate(nodes(count))), spread, site)
        case _:
            return timed(halves(count), spread, with_nics(count // 8, site))


def timed(wanted: tuple[NodeSpec, ...], spread: Spread, site: Inventory) -> float:
    """Return how many seconds of CPU it takes to place the nodes."""
    spec, count = cluster(wanted, spread=spread), len(wanted)
    begun = time.process_time()
    placement = solve(spec, site)
    took = time.process_time() - begun
    if len(placement.placements) != count:
        raise SystemExit(f"{len(placement.placements)} of {count} were placed")
    return took


def varied(at: int, node: NodeSpec) -> NodeSpec:
    match at % 4:
        case 1:
            return replace(node, gpu=replace(node.gpu, count=2))
        case 2:
            return replace(node, cpus=8)
        case 3:
            return replace(node, nic=NicRequest(kind=NicKind.NONE))
        case _:
            return node


if __name__ == "__main__":
    sys.exit(main())
