"""What hosts offer: a table by host, sums by cluster, and who counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group

from vsphere_ml.cli.views.layout.text import line, table
from vsphere_ml.core.report.capacity_report import GROUP

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from vsphere_ml.cli.views.layout.columns import Columns
    from vsphere_ml.core.report.capacity_report import CapacityRow, Sum
    from vsphere_ml.flows.profiles import OfferedProfiles

BY_HOST = ("HOST", "PROFILE", "SHARING", "MEMORY", "PER GPU", "FREE", "COUNTED BY")
GROUPS_BY_HOST = ("HOST", "DEVICE GROUP", "FREE", "COUNTED BY")
NAMED = ("DIRECTPATH PROFILE", "VENDOR", "KIND", "DEVICE")
BY_CLUSTER = ("CLUSTER", "PROFILE", "HOSTS", "FREE", "COUNTED BY")
GROUPS_BY_CLUSTER = ("CLUSTER", "DEVICE GROUP", "HOSTS", "FREE", "COUNTED BY")
OPTIONAL = ("COUNTED BY", "SHARING", "HOSTS")


def text(found: OfferedProfiles) -> RenderableType:
    """Return both tables, and what is counted differently; a sentence when no host offers anything."""
    if not found.hosts:
        return line("no host offers a vGPU profile or a GPU for DirectPath")
    parts: list[RenderableType] = []
    for each in filter(lambda made: made.rows, _tables(found)):
        parts += [*[line("")] * bool(parts), each]
    parts += [line("")] * bool(found.differences)
    parts += [line(("! ", "yellow"), each) for each in found.differences]
    return Group(*parts)


def _tables(found: OfferedProfiles) -> Iterator[Columns]:
    """Yield profiles and device groups by host and by cluster, apart: a group's name is as long as a line."""
    groups = {each.name for each in found.hosts if each.sharing == GROUP}
    yield table(BY_HOST, (_host(each) for each in found.hosts if each.name not in groups), OPTIONAL)
    of_hosts = (each for each in found.hosts if each.name in groups)
    yield table(GROUPS_BY_HOST, (_group(each) for each in of_hosts), OPTIONAL)
    yield table(BY_CLUSTER, (_cluster(each) for each in found.clusters if each.name not in groups), OPTIONAL)
    yield table(GROUPS_BY_CLUSTER, (_cluster(each) for each in found.clusters if each.name in groups), OPTIONAL)
    named = ((each.name, each.vendor or "-", each.kind, each.device or "not known") for each in found.direct_path)
    yield table(NAMED, named)


def _host(each: CapacityRow) -> tuple[str, ...]:
    memory = f"{each.framebuffer_mib} MiB" if each.framebuffer_mib else "-"
    return each.host, each.name, each.sharing, memory, _per_gpu(each), _free(each.free), each.counted_by


def _group(each: CapacityRow) -> tuple[str, ...]:
    return each.host, each.name, _free(each.free), each.counted_by


def _cluster(each: Sum) -> tuple[str, ...]:
    reserved = each.reported.reserved if each.reported else 0
    more = f", {reserved} kept by reservations" if reserved else ""
    return each.cluster, each.name, str(each.hosts), f"{_free(each.free)}{more}", each.counted_by


def _per_gpu(each: CapacityRow) -> str:
    if each.per_gpu is None:
        return "-" if each.free is not None else "not in NVIDIA's tables"
    return (
        f"{each.per_gpu}"
        if each.per_gpu_mixed in {None, each.per_gpu}
        else (f"{each.per_gpu}, mixed {each.per_gpu_mixed}")
    )


def _free(value: int | None) -> str:
    return "unknown" if value is None else str(value)
