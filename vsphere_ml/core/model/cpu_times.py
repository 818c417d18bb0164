"""What vCenter counts of a VM's CPUs while they wait to run."""

from __future__ import annotations

from vsphere_ml.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuTimes:
    """Mean shares of one virtual CPU's time; None where vCenter has no sample of it."""

    ready: float | None = None  # cpu.ready: it could run, and no physical CPU was free
    costop: float | None = None  # cpu.costop: it could run, and waited for the VM's other CPUs
