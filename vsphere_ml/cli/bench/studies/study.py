"""`vsml bench study NAME [cluster.toml]`: a benchmark whose figures stand side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from vsphere_ml.cli.bench.records.record import RECORDS
from vsphere_ml.cli.bench.records.report import DocumentOptions, StudyName
from vsphere_ml.cli.bench.run_options import BenchOptions, WorkloadName
from vsphere_ml.cli.options import DEFAULT_FILE, ClusterFile, OnlyNodes, command
from vsphere_ml.cli.terminal import Answer, Terminal
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.hints import CommandLine

if TYPE_CHECKING:
    from vsphere_ml.bench.launch.matrix import BenchSpec
    from vsphere_ml.bench.studies.side_by_side import SideBySide
    from vsphere_ml.bench.studies.study_design import StudyDesign
    from vsphere_ml.cli.views.bench.studies.side_by_side import StudyRecord
    from vsphere_ml.core.codec import Extended
    from vsphere_ml.core.model.spec import ClusterSpec

MOST_NODES = 4  # where `--nodes` is left out
Name = Annotated[StudyName, typer.Argument(metavar="STUDY", help="What is compared.")]


@command
def study(
    terminal: Terminal,
    name: Name,
    file: ClusterFile = DEFAULT_FILE,
    *,
    given: BenchOptions,
    only: OnlyNodes = None,
    wanted: DocumentOptions,
) -> Answer["Extended[SideBySide, StudyRecord]"]:
    """Measure side by side: transports, ATS off and on, vGPU and passthrough, or two TCP stacks.

    Each cell is measured or recorded as refused, with its cause. The same command goes on where it was interrupted.

    Example: `vsml bench study pvrdma cluster.toml --nodes 1-4`
    """
    from dataclasses import replace

    from vsphere_ml.bench.studies import STUDIES, documents
    from vsphere_ml.cli.bench.files import write
    from vsphere_ml.cli.bench.run_options import launch_settings
    from vsphere_ml.cli.views.bench.studies import side_by_side as view
    from vsphere_ml.cli.wiring.bench_wiring import open_benchmark
    from vsphere_ml.cli.wiring.cluster_file import load
    from vsphere_ml.flows.bench.study import run_study

    given.check()
    spec, design = load(file), STUDIES[name]
    asked = study_spec(given, spec, design, len(only) if only else len(spec.nodes))
    settings = launch_settings(given, spec)
    folder = given.settings.into or RECORDS / f"study-{name}-{spec.name}"
    with open_benchmark(terminal, spec, asked, settings, folder=folder, only=only or ()) as benchmark:
        done = run_study(replace(benchmark, factor=design.factor), design)
    for path, text in ((wanted.html, documents.page), (wanted.markdown, documents.markdown)):
        if path is not None:
            write(path, text(done.result))
            terminal.say(f"wrote {path}")
    return view.answer(done)


def study_spec(given: BenchOptions, spec: ClusterSpec, design: StudyDesign, most: int) -> BenchSpec:
    """Return what the study measures: what nobody names on the command line is the design's.

    ConfigError `usage` for a program of one's own, and for transports that the study does not compare.
    """
    from dataclasses import replace

    from vsphere_ml.bench.model.launcher_names import LauncherName
    from vsphere_ml.cli.bench.run_options import MatrixOptions, bench_spec

    matrix = given.matrix
    if given.own.script is not None:
        raise ConfigError(
            "a study is of vsml's own workloads", code="usage", hint=CommandLine("vsml bench --script FILE")
        )
    if other := [each for each in matrix.transport or () if each not in design.transports]:
        hint = " or ".join(f"--transport {each}" for each in design.transports)
        raise ConfigError(f"{design.name} does not compare {other[0]}", code="usage", hint=hint)
    named = matrix.launcher or matrix.engine or matrix.backend
    filled = {
        "transport": matrix.transport or list(design.transports),
        "nodes": matrix.nodes or [f"1-{min(MOST_NODES, most)}" if most > 1 else "1"],
        "workload": matrix.workload or [WorkloadName(each) for each in design.workloads],
        "launcher": LauncherName(design.launcher) if design.launcher and not named else matrix.launcher,
    }
    given = BenchOptions(**{**vars(given), "matrix": MatrixOptions(**{**vars(matrix), **filled})})
    return replace(bench_spec(given, spec, most), stacks=design.stacks)
