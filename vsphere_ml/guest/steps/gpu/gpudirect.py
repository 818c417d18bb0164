"""GPUDirect RDMA: through DMA-BUF where kernel and driver allow it, through nvidia-peermem elsewhere."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from vsphere_ml.core.model.guest import Step, StepNeed
from vsphere_ml.guest.steps.system.content import Content
from vsphere_ml.guest.steps.system.kernel import KernelModule
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.core.model.guest import CommandAnswer, GuestFacts, Shell

PROBES = {"kernel": "uname -r", "licence": "modinfo -F license nvidia"}
_DMA_BUF_SINCE = (5, 12)
_PEERMEM = KernelModule(name="nvidia-peermem")


@dataclass(frozen=True, slots=True, kw_only=True)
class _GpuDirectMethod:
    """How GPU memory reaches the NIC, and why so."""

    dma_buf: bool
    reason: str

    @property
    def name(self) -> str:
        return "DMA-BUF" if self.dma_buf else "nvidia-peermem"


def gpudirect_method(seen: Mapping[str, CommandAnswer]) -> _GpuDirectMethod:
    """Return the way for a guest, from the answers to `PROBES`."""
    release = seen["kernel"].text
    numbers = re.match(r"(\d{1,9})\.(\d{1,9})", release)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < _DMA_BUF_SINCE:
        return _GpuDirectMethod(dma_buf=False, reason=f"kernel {release} is older than 5.12")
    # The open module says `Dual MIT/GPL`, the closed one `NVIDIA`.
    if "MIT" not in seen["licence"].text:
        return _GpuDirectMethod(dma_buf=False, reason="the NVIDIA module is not the open one")
    return _GpuDirectMethod(dma_buf=True, reason=f"kernel {release} and the open NVIDIA module allow it")


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuDirect(Step):
    """GPU memory that the NIC can reach, and a note of which way it goes in /etc/vsml/gpudirect."""

    KIND: ClassVar[str] = "gpudirect"
    AFTER_REBOOT: ClassVar[bool] = True

    @property
    def title(self) -> str:
        return "GPUDirect RDMA"

    def probes(self, facts: GuestFacts) -> Mapping[str, str]:
        # The content of the note depends on the answers, so it is read as it is.
        return {**PROBES, **_PEERMEM.probes(facts), "note": f"cat {_NOTE}"}

    def drift(self, seen: Mapping[str, CommandAnswer], facts: GuestFacts) -> str | None:
        chosen = gpudirect_method(seen)
        if not chosen.dma_buf and (drift := _PEERMEM.drift(seen, facts)):
            return f"{drift}; it is needed since {chosen.reason}"
        return None if seen["note"].out == _method_note(chosen) else f"{_NOTE} does not say {chosen.name}"

    def apply(self, shell: Shell, facts: GuestFacts) -> StepNeed:
        chosen = gpudirect_method(shell.ask(PROBES))
        if not chosen.dma_buf:
            _PEERMEM.apply(shell, facts)
        Content(path=_NOTE, text=_method_note(chosen)).put(shell)
        return StepNeed.NOTHING


_NOTE = "/etc/vsml/gpudirect"


def _method_note(chosen: _GpuDirectMethod) -> str:
    return f"{chosen.name}: {chosen.reason}\n"
