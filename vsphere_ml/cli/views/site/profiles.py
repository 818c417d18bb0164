"""What hosts offer: a table by host, sums by cluster, and who counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group

from vsphere_ml.cli.views.layout.text import line, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from vsphere_ml.core.report.capacity_report import CapacityRow
    from vsphere_ml.flows.profiles import OfferedProfiles

BY_HOST = ("HOST", "PROFILE", "SHARING", "MEMORY", "PER GPU", "FREE", "COUNTED BY")
NAMED = ("DIRECTPATH PROFILE", "VENDOR", "KIND", "DEVICE")
BY_CLUSTER = ("CLUSTER", "PROFILE", "HOSTS", "FREE", "COUNTED BY")


def text(found: OfferedProfiles) -> RenderableType:
    """Return both tables, and what is counted differently; a sentence when no host offers anything."""
    if not found.hosts:
        return line("no host offers a vGPU profile or a GPU for DirectPath")
    parts: list[RenderableType] = [
        table(BY_HOST, _hosts(found)),
        line(""),
        table(BY_CLUSTER, _clusters(found)),
    ]
    if found.direct_path:
        rows = ((each.name, each.vendor or "-", each.kind, each.device or "not known") for each in found.direct_path)
        parts += [line(""), table(NAMED, rows)]
    parts += [line("")] * bool(found.differences)
    parts += [line(("! ", "yellow"), each) for each in found.differences]
    return Group(*parts)


def _hosts(found: OfferedProfiles) -> Iterator[tuple[str, ...]]:
    for each in found.hosts:
        memory = f"{each.framebuffer_mib} MiB" if each.framebuffer_mib else "-"
        yield each.host, each.name, each.sharing, memory, _per_gpu(each), _free(each.free), each.counted_by


def _clusters(found: OfferedProfiles) -> Iterator[tuple[str, ...]]:
    for each in found.clusters:
        previous = (
            f", {each.reported.reserved} kept by reservations" if each.reported and each.reported.reserved else ""
        )
        yield each.cluster, each.name, str(each.hosts), f"{_free(each.free)}{previous}", each.counted_by


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
