"""Targets for Prometheus' file-based service discovery.

The format: https://prometheus.io/docs/prometheus/latest/configuration/configuration/#file_sd_config. A label that a
target brings has precedence over the scrape configuration's own, `job` among them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypedDict

from vsphere_ml.core.catalog.exporters import EXPORTERS
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from vsphere_ml.core.catalog.exporters import ScrapeJob


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrapedNode:
    """A node as Prometheus reaches it. `esxi_host` is empty where vCenter was not asked."""

    name: str
    address: str | None
    esxi_host: str = ""


class TargetGroup(TypedDict):
    """Targets with the labels that they share."""

    targets: list[str]
    labels: dict[str, str]


def target_groups(
    cluster: str, nodes: Sequence[ScrapedNode], jobs: Iterable[ScrapeJob], lab: str | None = None
) -> list[TargetGroup]:
    """Return one group for each exporter of each node that has an address. `lab` names the lab that they are of."""
    return [
        {
            "targets": [_host_and_port(node.address, EXPORTERS[job].port)],
            "labels": {"job": job.value, "cluster": cluster, "node": node.name, **_where(node, lab)},
        }
        for job in jobs
        for node in nodes
        if node.address is not None
    ]


def file_sd(groups: Sequence[Mapping[str, object]]) -> str:
    """Return the groups as the file that Prometheus reads, a group on each line."""
    lines = ",\n".join(f"  {json.dumps(group, ensure_ascii=False)}" for group in groups)
    return f"[\n{lines}\n]\n" if groups else "[]\n"


def _host_and_port(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _where(node: ScrapedNode, lab: str | None) -> dict[str, str]:
    """Return labels of what is known; Prometheus takes an empty label for none."""
    known = {"esxi_host": node.esxi_host, "lab": lab or ""}
    return {name: value for name, value in known.items() if value}
