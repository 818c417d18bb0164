"""What the cluster file's `[guest.settings]` say of how launches are made."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.bench.model.job import RunIn, Tools
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.flows.bench.launch import LaunchSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.core.model.spec import ClusterSpec


def launch_settings(
    spec: ClusterSpec, within: RunIn, interface: str, limit_s: float, rails: tuple[str, ...] = ()
) -> LaunchSettings:
    """Return what the cluster file says of how launches are made."""
    settings = spec.guest.settings
    return LaunchSettings(
        tools=_tools(settings, within),
        interface=interface or settings.get("interface", ""),
        rails=rails,
        limit_s=limit_s,
    )


def _tools(settings: Mapping[str, str], within: RunIn) -> Tools:
    """Return the guests' own settings, those that playbooks read too."""
    guest = Tools(
        python=f"{settings.get('runtime_path', '/opt/vsml/runtime')}/bin/python",
        mpirun=settings.get("mpirun", ""),
        user=settings.get("mesh_user", "root"),
        all_reduce_perf=settings.get("nccl_tests", ""),
        rdma_device=settings.get("rdma_device", ""),
    )
    if within is RunIn.GUEST:
        return guest
    return replace(
        guest,
        python=settings.get("container_python", "python3"),
        mpirun=settings.get("container_mpirun", ""),
        within=within,
        ssh_port=_port(settings.get("container_port", "0")),
    )


def _port(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text):
        raise ConfigError(
            f"container_port = {text!r} is no port",
            code="config.invalid",
            target="guest.settings.container_port",
            hint='container_port = "12345"',
        )
    return int(text)
