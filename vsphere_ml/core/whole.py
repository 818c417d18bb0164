"""Which of a host's GPUs can be handed through whole, by DirectPath, and what speaks against it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.reasons import Lack, Reason
from vsphere_ml.core.spec import ReadyKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.inventory import Host, WholeGpu
    from vsphere_ml.core.rooms import Room
    from vsphere_ml.core.wish import WholeWish


def short(room: Room, wanted: WholeWish, count: int) -> Iterator[Reason]:
    """Yield what too little is left of."""
    there = matching(room.host, wanted)
    left = [gpu for gpu in there if free(room, gpu)]
    if labels := _other_labels(room.host, wanted):
        yield Reason(Lack.LABEL, f"no {wanted} has the hardware label `{wanted.label}`: there is {', '.join(labels)}")
    elif len(left) < count:
        taken = held(room, wanted)
        holders = f": {', '.join(taken)}" if taken else ""
        lack = Lack.GPU if all(gpu.active for gpu in there) else Lack.PASSTHROUGH
        rule = "host-passthrough" if lack is Lack.PASSTHROUGH else ""
        yield Reason(lack, f"{len(left)} of {len(there)} {wanted} free for DirectPath, {count} needed{holders}", rule)


def held(room: Room, wanted: WholeWish) -> list[str]:
    """Return, in words, why GPUs that would otherwise do cannot be had."""
    return [words for gpu in matching(room.host, wanted) if (words := _taken(room, gpu))]


def matching(host: Host, wanted: WholeWish) -> list[WholeGpu]:
    """Return a host's GPUs of the wanted kind and hardware label."""
    return [
        gpu
        for gpu in host.whole_gpus
        if (gpu.vendor, gpu.device) == (wanted.vendor, wanted.device)
        and (not wanted.label or gpu.label == wanted.label)
        and (not wanted.only or gpu.address in wanted.only)
    ]


def _other_labels(host: Host, wanted: WholeWish) -> tuple[str, ...]:
    """Return what GPUs of the wanted kind are labelled, when none has the wanted label."""
    there = [gpu for gpu in host.whole_gpus if (gpu.vendor, gpu.device) == (wanted.vendor, wanted.device)]
    if not wanted.label or any(gpu.label == wanted.label for gpu in there):
        return ()
    return tuple(sorted({f"`{gpu.label}`" if gpu.label else "one without a label" for gpu in there}))


def free(room: Room, gpu: WholeGpu) -> bool:
    return not _taken(room, gpu)


def _taken(room: Room, gpu: WholeGpu) -> str:
    """Return why a GPU cannot be had, in words; empty when it can."""
    if gpu.address in room.holders:
        return f"GPU {gpu.address} {room.holders[gpu.address]}"
    if shares := room.shares.get(gpu.address):
        return f"GPU {gpu.address} {shares[0].whose}"
    return "" if gpu.active or room.may(ReadyKind.PASSTHROUGH) else f"GPU {gpu.address} is not enabled for passthrough"
