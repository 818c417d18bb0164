"""How much CPU seating takes: 64 to 512 VMs on 1,000 hosts of four A100 each, on one core.

    make bench-seats

The site is a value, so nothing but the decision is timed: names resolved, hosts compared, devices chosen. *Alike* are
VMs that all ask for the same; *mixed* ask for four kinds of things, one of them two GPUs.
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
from tests.fakes.wishes import cluster, nodes
from vsphere_ml.core.placement import solve
from vsphere_ml.core.spec import NicKind, NicRequest, NodeSpec, Spread

if TYPE_CHECKING:
    from vsphere_ml.core.inventory import Inventory

HOSTS = 1000
SIZES = (64, 128, 256, 512)
ROUNDS = 5
LIMIT_S = 1.0  # for the largest
KINDS = ("alike", "mixed")


def main() -> int:
    print(
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {platform.platform()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}"
    )
    site = quad_8u3(hosts=HOSTS)
    print(f"seconds of CPU for VMs on {HOSTS} hosts, median of {ROUNDS}\n\n{'':16}" + "".join(f"{n:>8}" for n in SIZES))
    largest = [row(kind, spread, site) for kind in KINDS for spread in Spread]
    kept = max(largest) <= LIMIT_S
    print(f"\n{SIZES[-1]} VMs: at most {max(largest):.2f} s, limit {LIMIT_S} s: {'kept' if kept else 'NOT kept'}")
    return 0 if kept else 1


def row(kind: str, spread: Spread, site: Inventory) -> float:
    """Print a row of medians, and return the last one."""
    medians = [statistics.median(seated(kind, count, spread, site) for _ in range(ROUNDS)) for count in SIZES]
    print(f"{kind + ', ' + spread:16}" + "".join(f"{median:8.2f}" for median in medians))
    return medians[-1]


def seated(kind: str, count: int, spread: Spread, site: Inventory) -> float:
    wanted = nodes(count) if kind == "alike" else tuple(varied(at, node) for at, node in enumerate(nodes(count)))
    spec = cluster(wanted, spread=spread)
    begun = time.process_time()
    placement = solve(spec, site)
    took = time.process_time() - begun
    if len(placement.seats) != count:
        raise SystemExit(f"{len(placement.seats)} of {count} were seated")
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
