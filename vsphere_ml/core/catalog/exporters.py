"""What gives a node's figures to Prometheus: where each exporter listens, and the Debian package that brings it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping


class ScrapeJob(StrEnum):
    """The `job` by which Prometheus knows an exporter's figures."""

    NODE = "node"
    DCGM = "dcgm"


@dataclass(frozen=True, slots=True)
class _Exporter:
    """An exporter, on all addresses of its node."""

    title: str
    package: str
    unit: str
    port: int


EXPORTERS: Mapping[ScrapeJob, _Exporter] = {
    # Debian and Ubuntu; the port is the program's own: https://github.com/prometheus/node_exporter
    ScrapeJob.NODE: _Exporter("node exporter", "prometheus-node-exporter", "prometheus-node-exporter", 9100),
    # NVIDIA's CUDA repositories. Unit and port: https://github.com/NVIDIA/dcgm-exporter, packaging/config-files/systemd
    # and pkg/cmd/app.go.
    ScrapeJob.DCGM: _Exporter("DCGM exporter", "datacenter-gpu-manager-exporter", "nvidia-dcgm-exporter", 9400),
}
