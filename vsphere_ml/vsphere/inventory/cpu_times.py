"""Asks vCenter what VMs' CPUs waited for: cpu.ready and cpu.costop of its PerformanceManager, one question for all.

Both count milliseconds, summed over a VM's virtual CPUs, in samples of 20 s that a host keeps for an hour (vSphere Web
Services API, PerformanceManager). Times are vCenter's own, so no two clocks are compared.
"""

from __future__ import annotations

from datetime import timedelta
from statistics import fmean
from typing import TYPE_CHECKING, Any

from pyVmomi import vim

from vsphere_ml.core.model.cpu_times import CpuTimes
from vsphere_ml.vsphere.inventory.collect import collect_objects, reference

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.vsphere.connection.session import Session

SAMPLE_S = 20  # of a real-time sample; it stands under the time at which it ended
_COUNTERS = ("ready", "costop")


def cpu_times(session: Session, vms: Mapping[str, Any], seconds: float) -> dict[str, CpuTimes]:
    """Return the mean shares in the last so many seconds, by name; what has no sample then is left out."""
    if session.content.perfManager is None:  # the API allows it
        return {}
    counters = _counter_ids(session)
    rows = collect_objects(session, vms.values(), {vim.VirtualMachine: ("summary.config.numCpu",)})
    cpus = {reference(vm): int(found["summary.config.numCpu"]) for vm, found in rows}
    since = session.root.CurrentTime() - timedelta(seconds=seconds)
    wanted = [vim.PerformanceManager.MetricId(counterId=each, instance="") for each in counters]
    questions = [
        vim.PerformanceManager.QuerySpec(
            entity=vm, startTime=since, intervalId=SAMPLE_S, metricId=wanted, format="normal"
        )
        for vm in vms.values()
        if reference(vm) in cpus
    ]
    answers = session.content.perfManager.QueryPerf(questions) if questions and wanted else ()
    by_vm = {reference(each.entity): each for each in answers or ()}
    found = {
        name: _shares(by_vm[reference(vm)], counters, cpus[reference(vm)])
        for name, vm in vms.items()
        if reference(vm) in by_vm
    }
    return {name: each for name, each in found.items() if each != CpuTimes()}


def _counter_ids(session: Session) -> dict[int, str]:
    """Return this vCenter's numbers of the counters; they differ from one vCenter to another."""
    return {
        int(each.key): each.nameInfo.key
        for each in session.content.perfManager.perfCounter or ()
        if each.groupInfo.key == "cpu" and each.nameInfo.key in _COUNTERS and each.rollupType == "summation"
    }


def _shares(answer: Any, counters: Mapping[int, str], cpus: int) -> CpuTimes:
    series = {counters[each.id.counterId]: each.value for each in answer.value or () if each.id.counterId in counters}
    return CpuTimes(**{name: _share(values, cpus) for name, values in series.items()})


def _share(milliseconds: list[int], cpus: int) -> float | None:
    """Return the mean share of a virtual CPU's time; a value below 0 stands for a sample that is not there."""
    samples = [each for each in milliseconds or () if each >= 0]
    return fmean(samples) / 1000 / SAMPLE_S / max(cpus, 1) if samples else None
