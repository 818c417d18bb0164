"""`vsml bench [cluster.toml]`: the benchmark itself."""

from __future__ import annotations

import hashlib
import re
import shlex
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vsphere_ml.bench.model.job import MARK
from vsphere_ml.bench.model.launcher_names import Backend, LauncherName
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.cli.bench.records.record import RECORDS
from vsphere_ml.cli.options import DEFAULT_FILE, ClusterFile, OnlyNodes, command
from vsphere_ml.cli.terminal import Answer, Terminal
from vsphere_ml.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class WorkloadName(StrEnum):
    LINK = "link"
    TRAIN = "train"
    ALLREDUCE = "allreduce"
    NCCL = "nccl"


class RunInChoice(StrEnum):
    GUEST = "guest"
    CONTAINER = "container"


class ModelName(StrEnum):
    SMALL = "small"
    MOBILENETV2 = "mobilenetv2"
    RESNET50 = "resnet50"


class Gradients(StrEnum):
    FP32 = "fp32"
    FP16 = "fp16"


@command
def run(
    terminal: Terminal,
    file: ClusterFile = DEFAULT_FILE,
    *,
    workload: Annotated[list[WorkloadName] | None, typer.Option(help="What to run; several times for several.")] = None,
    nodes: Annotated[
        list[str] | None, typer.Option(metavar="N,...", help="On so many nodes, such as 1-4 or 1,2,8; default: all.")
    ] = None,
    slots: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Ranks a node; default: as many as it has GPUs.")
    ] = None,
    launcher: Annotated[LauncherName, typer.Option(help="What starts the ranks.")] = LauncherName.HOROVODRUN,
    backend: Annotated[
        Backend | None, typer.Option(help="What carries the collectives; default: gloo, and mpi with mpirun.")
    ] = None,
    within: Annotated[
        RunInChoice, typer.Option("--in", help="Where ranks run: in the guests, or in the training container of each.")
    ] = RunInChoice.GUEST,
    transport: Annotated[list[Transport] | None, typer.Option(help="What the bytes between nodes go by.")] = None,
    model: Annotated[ModelName, typer.Option(help="What `train` trains.")] = ModelName.SMALL,
    batch: Annotated[int, typer.Option(min=1, metavar="N", help="Images a rank and step.")] = 32,
    image: Annotated[int, typer.Option(min=32, metavar="N", help="Pixels of an image's side.")] = 64,
    gradients: Annotated[
        list[Gradients] | None, typer.Option(help="Gradients on the wire, as fp32 or compressed to fp16.")
    ] = None,
    steps: Annotated[int, typer.Option(min=2, metavar="N", help="Steps of a launch at most.")] = 200,
    half_width: Annotated[
        float,
        typer.Option(
            min=0, metavar="PERCENT", help="End training when the step time is known to ± this much; 0: never."
        ),
    ] = 2.0,
    seconds: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="End training after this long.", show_default="no limit")
    ] = 0.0,
    script: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Run this program of yours instead, on every rank.")
    ] = None,
    arguments: Annotated[str, typer.Option(metavar="WORDS", help="What that program is given, in one word.")] = "",
    sizes: Annotated[
        str, typer.Option(metavar="BYTES,...", help="Message sizes of `allreduce`, such as 64K,1M,64M.")
    ] = "1024,65536,1048576,4194304,16777216,67108864",
    sweeps: Annotated[int, typer.Option(min=1, metavar="N", help="Repeats of each size.")] = 10,
    nccl_sizes: Annotated[
        str, typer.Option(metavar="FROM:TO", help="Smallest and largest message of `nccl`; sizes double.")
    ] = "8:1G",
    nccl_iterations: Annotated[int, typer.Option(min=1, metavar="N", help="Iterations of each size of `nccl`.")] = 20,
    repeats: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Whole launches of each configuration, at most; default: 5, of --script 1."
        ),
    ] = None,
    repeats_half_width: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="PERCENT",
            help="No more launches when five or more are known to ± this much.",
            show_default="never",
        ),
    ] = 0.0,
    repeats_seconds: Annotated[
        float,
        typer.Option(min=0, metavar="SECONDS", help="Launch nothing again after this long.", show_default="no limit"),
    ] = 0.0,
    variable: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Set this for every rank; it is recorded, so never a secret."),
    ] = None,
    least_nodes: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", help="Elastic: go on training while N nodes are left; 0: fail when one is lost."
        ),
    ] = 0,
    interface: Annotated[str, typer.Option(metavar="NAME", help="The interface that ranks talk over.")] = "",
    link_gbit: Annotated[
        float | None,
        typer.Option("--link-gbit", min=0.001, metavar="GBIT", help="Line rate of a node's NIC, where no guest tells."),
    ] = None,
    limit: Annotated[float, typer.Option(min=10, metavar="SECONDS", help="End a launch after this long.")] = 3600.0,
    into: Annotated[
        Path | None, typer.Option("--into", metavar="FOLDER", help="The record; one that was cut is gone on with.")
    ] = None,
    only: OnlyNodes = None,
) -> Answer:
    """Measure Horovod across the cluster's nodes, and prove where it ran and that the ranks stayed in sync.

    Every launch is recorded when it has ended. Type the same command with the same `--into` to make only what lacks.

    Example: `vsml bench cluster.toml --workload train --workload allreduce --nodes 1-4`
    """
    from vsphere_ml.bench.launch.launchers import choose_backend
    from vsphere_ml.bench.launch.matrix import BenchSpec, check_wish
    from vsphere_ml.bench.model.job import RunIn
    from vsphere_ml.bench.model.record import Workload
    from vsphere_ml.bench.predict.arguments import check_finite, message_sizes, node_counts
    from vsphere_ml.cli.bench.launch_settings import means
    from vsphere_ml.cli.bench.origin import origin
    from vsphere_ml.cli.views.bench import run as view
    from vsphere_ml.cli.views.progress.apply_progress import show_apply_progress
    from vsphere_ml.cli.views.progress.bench_progress import show_bench_progress as following_bench
    from vsphere_ml.cli.wiring import guest_wiring, site_wiring
    from vsphere_ml.config.load import load
    from vsphere_ml.flows.bench.series import Benchmark, bench
    from vsphere_ml.flows.bench.watch import Enough

    check_finite(half_width, seconds, repeats_half_width, repeats_seconds, limit, link_gbit)
    spec = load(file)
    most = len(only) if only else len(spec.nodes)
    counts = node_counts(",".join(nodes)) if nodes else (most,)
    if least_nodes > min(counts):
        raise ConfigError(
            f"--least-nodes {least_nodes} is more than the {min(counts)} of the smallest launch",
            code="usage",
            hint=f"--least-nodes {min(counts)}, or other --nodes",
        )
    _check_program(script, arguments, workload, least_nodes)
    variables = _variables(variable or ())
    bench_spec = BenchSpec(
        workloads=(Workload.SCRIPT,) if script else tuple(Workload(each) for each in workload or [WorkloadName.TRAIN]),
        nodes=counts,
        slots=slots or min(node.gpu.count for node in spec.nodes),
        transports=tuple(transport or [Transport.TCP]),
        gradients=tuple(gradients or [Gradients.FP32]),
        launcher=launcher,
        backend=choose_backend(launcher, backend, elastic=bool(least_nodes)),
        model=model,
        batch=batch,
        repeats=repeats or default_launches(script),
        within=RunIn(within),
        variables=variables,
        options={
            Workload.TRAIN: {
                "image": str(image),
                "steps": str(steps),
                **({"least_nodes": str(least_nodes)} if least_nodes else {}),
            },
            Workload.SCRIPT: _identity(script, arguments) if script else {},
            Workload.ALLREDUCE: {"sizes": ",".join(map(str, message_sizes(sizes))), "repeats": str(sweeps)},
            Workload.NCCL: _message_sizes(nccl_sizes) | {"iterations": str(nccl_iterations)},
        },
    )
    check_wish(bench_spec)
    clock = site_wiring.SystemClock()
    with (
        site_wiring.vcenter(spec.vcenter, terminal) as vcenter,
        show_apply_progress(terminal.err) as notify,
        following_bench(terminal.err) as notify_bench,
    ):
        done = bench(
            Benchmark(
                spec=spec,
                vcenter=vcenter,
                guests=guest_wiring.guests(spec, clock),
                wish=bench_spec,
                means=replace(
                    means(spec, RunIn(within), interface, limit),
                    enough=Enough(half_width=half_width / 100, seconds=seconds),
                    enough_launches=Enough(half_width=repeats_half_width / 100, seconds=repeats_seconds),
                    least_nodes=least_nodes,
                    script=script,
                    arguments=tuple(_words(arguments)),
                    origin=origin(spec.file, link_gbit),
                ),
                folder=into or RECORDS / f"{datetime.now(UTC):%Y-%m-%dT%H%M%S}",
                tell=notify,
                tell_bench=notify_bench,
                clock=clock,
                only=only or (),
                playbooks=guest_wiring.read_playbooks(spec),
            )
        )
    return Answer(
        text=view.text(done),
        data={
            "cluster": done.cluster,
            "record": str(done.folder),
            "runs": list(done.runs),
            "not_made": list(done.not_made),
        },
        status=done.errors[0].status if done.errors else 0,
        errors=done.errors,
    )


def default_launches(script: Path | None) -> int:
    """Return how often is launched when nobody says: a program of one's own once, else as often as a baseline needs."""
    from vsphere_ml.bench.gate.baseline import LAUNCHES

    return 1 if script else LAUNCHES


def _check_program(script: Path | None, arguments: str, workload: Sequence[str] | None, least_nodes: int) -> None:
    """Raise ConfigError for options that would go unheard."""
    if script is not None and workload:
        raise ConfigError("--script runs instead of a workload", code="usage", hint="one of --script and --workload")
    if arguments and script is None:
        raise ConfigError("--arguments are those of a program of yours", code="usage", hint="--script FILE")
    if least_nodes and (script is not None or WorkloadName.TRAIN not in (workload or [WorkloadName.TRAIN])):
        raise ConfigError("only `train` is elastic", code="usage", hint="--workload train, or no --least-nodes")


def _identity(script: Path, arguments: str) -> dict[str, str]:
    """Return what tells one program from another: a script that was changed is another configuration."""
    try:
        digest = hashlib.sha256(script.read_bytes()).hexdigest()
    except OSError as error:
        raise ConfigError(
            f"cannot read {script}: {error.strerror}",
            code="file.unreadable",
            target=str(script),
            hint="correct its path",
        ) from error
    return {"script": script.name, "sha256": digest[:16], "arguments": arguments}


def _variables(given: Sequence[str]) -> dict[str, str]:
    pairs = [each.partition("=") for each in given]
    for entire, (name, equals, _) in zip(given, pairs, strict=True):
        if not equals or not _NAME.fullmatch(name) or name == MARK:
            raise ConfigError(f"--variable {entire}", code="usage", hint="--variable NCCL_ALGO=RING")
    return {name: value for name, _, value in pairs}


def _message_sizes(text: str) -> dict[str, str]:
    """Return the two sizes as nccl-tests reads them: bytes, with K, M or G for powers of 1024."""
    from vsphere_ml.bench.predict.arguments import MOST_BYTES

    match = re.fullmatch(r"([0-9]{1,12}[KMG]?):([0-9]{1,12}[KMG]?)", text, re.IGNORECASE)
    # Doubling 0 never comes to an end: nccl-tests would go on with it for ever.
    if match is None or not 1 <= _bytes(match[1]) <= _bytes(match[2]) <= MOST_BYTES:
        what = f"is not of the form 8:1G, from 1 byte to {MOST_BYTES >> 30} GiB"
        raise ConfigError(f"--nccl-sizes: {text!r} {what}", code="usage", hint="--nccl-sizes 8:1G")
    return {"smallest": match[1], "largest": match[2]}


def _bytes(text: str) -> int:
    return int(text.rstrip("KMGkmg")) << {"k": 10, "m": 20, "g": 30}.get(text[-1].lower(), 0)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise ConfigError(f"--arguments: {error}", code="usage", hint='--arguments "--epochs 1"') from error
