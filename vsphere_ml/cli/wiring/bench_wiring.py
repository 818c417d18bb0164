"""Puts a benchmark together: the site, the guests, and who shows its progress."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from vsphere_ml.cli.views.progress.apply_progress import show_apply_progress
from vsphere_ml.cli.views.progress.bench_progress import show_bench_progress
from vsphere_ml.cli.wiring import guest_wiring, site_wiring
from vsphere_ml.flows.bench.series import Benchmark
from vsphere_ml.flows.kubernetes.benchmark import PodBenchmark
from vsphere_ml.kubernetes.api.kubeconfig import connect

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from vsphere_ml.bench.launch.matrix import BenchSpec
    from vsphere_ml.cli.bench.run_options import PodOptions
    from vsphere_ml.cli.terminal import Terminal
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.flows.bench.launch import LaunchSettings


@contextmanager
def open_benchmark(
    terminal: Terminal,
    spec: ClusterSpec,
    asked: BenchSpec,
    settings: LaunchSettings,
    *,
    folder: Path,
    only: Collection[str],
) -> Iterator[Benchmark]:
    """Yield what to measure on a cluster, and sign out of its vCenter afterwards; `folder` takes the record."""
    clock = site_wiring.SystemClock()
    with (
        site_wiring.vcenter(spec.vcenter, terminal) as vcenter,
        show_apply_progress(terminal.err) as notify,
        show_bench_progress(terminal.err) as notify_bench,
    ):
        yield Benchmark(
            spec=spec,
            vcenter=vcenter,
            guests=guest_wiring.guests(spec, clock),
            bench_spec=asked,
            settings=settings,
            folder=folder,
            notify=notify,
            notify_bench=notify_bench,
            clock=clock,
            only=only,
            playbooks=guest_wiring.read_playbooks(spec),
        )


@contextmanager
def open_pod_benchmark(
    terminal: Terminal,
    spec: ClusterSpec,
    asked: BenchSpec,
    settings: LaunchSettings,
    *,
    folder: Path,
    pods: PodOptions,
) -> Iterator[PodBenchmark]:
    """Yield what to measure in pods of the cluster that the kubeconfig names; `folder` takes the record."""
    from vsphere_ml.cli.bench.run_options import site_values

    values, api = site_values(pods, spec), connect(pods.context or "")
    with (
        site_wiring.vcenter(spec.vcenter, terminal) as vcenter,
        show_apply_progress(terminal.err) as notify,
        show_bench_progress(terminal.err) as notify_bench,
    ):
        yield PodBenchmark(
            spec=spec,
            vcenter=vcenter,
            api=api,
            values=values,
            bench_spec=asked,
            settings=settings,
            folder=folder,
            notify=notify,
            notify_bench=notify_bench,
            clock=site_wiring.SystemClock(),
        )
