"""Which of a host's GPUs can be handed through whole, by DirectPath, and what speaks against it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.model.spec import HostConfigKind
from vsphere_ml.core.rules.reasons import Reason, RejectReason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.model.inventory import DirectPathGpu, Host
    from vsphere_ml.core.nodes.requirements import PassthroughGpu
    from vsphere_ml.core.placement.host.host_capacity import HostCapacity


def shortage_reasons(capacity: HostCapacity, wanted: PassthroughGpu, count: int) -> Iterator[Reason]:
    """Yield what too little is left of."""
    there = matching_gpus(capacity.host, wanted)
    left = [gpu for gpu in there if free(capacity, gpu)]
    if labels := _other_labels(capacity.host, wanted):
        yield Reason(
            RejectReason.LABEL, f"no {wanted} has the hardware label `{wanted.label}`: there is {', '.join(labels)}"
        )
    elif len(left) < count:
        words = f"{len(left)} of {len(there)} {wanted} free for DirectPath, {count} needed"
        reason = RejectReason.GPU if all(gpu.active for gpu in there) else RejectReason.PASSTHROUGH
        rule = "host-passthrough" if reason is RejectReason.PASSTHROUGH else ""
        yield Reason(reason, words, rule, tuple(holder_texts(capacity, wanted)))


def holder_texts(capacity: HostCapacity, wanted: PassthroughGpu) -> list[str]:
    """Return, in words, why GPUs that would otherwise do cannot be had."""
    return [words for gpu in matching_gpus(capacity.host, wanted) if (words := _holder_text(capacity, gpu))]


def matching_gpus(host: Host, wanted: PassthroughGpu) -> list[DirectPathGpu]:
    """Return a host's GPUs of the wanted kind and hardware label."""
    return [
        gpu
        for gpu in host.passthrough_gpus
        if (gpu.vendor, gpu.device) == (wanted.vendor, wanted.device)
        and (not wanted.label or gpu.label == wanted.label)
        and (not wanted.only or gpu.address in wanted.only)
    ]


def _other_labels(host: Host, wanted: PassthroughGpu) -> tuple[str, ...]:
    """Return what GPUs of the wanted kind are labelled, when none has the wanted label."""
    there = [gpu for gpu in host.passthrough_gpus if (gpu.vendor, gpu.device) == (wanted.vendor, wanted.device)]
    if not wanted.label or any(gpu.label == wanted.label for gpu in there):
        return ()
    return tuple(sorted({f"`{gpu.label}`" if gpu.label else "one without a label" for gpu in there}))


def free(capacity: HostCapacity, gpu: DirectPathGpu) -> bool:
    return not _holder_text(capacity, gpu)


def _holder_text(capacity: HostCapacity, gpu: DirectPathGpu) -> str:
    """Return why a GPU cannot be had, in words; empty when it can."""
    if gpu.address in capacity.holders:
        return f"GPU {gpu.address} {capacity.holders[gpu.address]}"
    if shares := capacity.shares.get(gpu.address):
        return f"GPU {gpu.address} {shares[0].whose}"
    return (
        ""
        if gpu.active or capacity.may(HostConfigKind.PASSTHROUGH)
        else f"GPU {gpu.address} is not enabled for passthrough"
    )
