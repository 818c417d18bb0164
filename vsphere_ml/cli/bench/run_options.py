"""The options of `vsml bench run`, and what they come to."""

from __future__ import annotations

import hashlib
import re
import shlex
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vsphere_ml.bench.model.engines import ENGINES, Engine
from vsphere_ml.bench.model.job import MARK, MPICH, OPEN_MPI, USER_MARK, RunIn
from vsphere_ml.bench.model.launcher_names import Backend, LauncherName
from vsphere_ml.bench.model.record import Arithmetic
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.cli.bench.files import pieces
from vsphere_ml.cli.options import option_group
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.kubernetes.image.variants import USER, MpiName

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.bench.launch.matrix import BenchSpec
    from vsphere_ml.bench.model.job import Tools
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.flows.bench.launch import LaunchSettings
    from vsphere_ml.kubernetes.export.site_values import SiteValues

RanksRunIn = Annotated[
    RunIn,
    typer.Option(
        "--run-in",
        "--in",
        metavar="PLACE",
        help="Where the ranks run: guest, container (the guests' training container) or kubernetes (pods).",
    ),
]
LOCAL_EVERY = 5  # as `train.py` has it, whose default is no option of a configuration
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OWN = frozenset({MARK, USER_MARK, "VSML_BENCH_FILE"})  # the marks of processes, and what `rank.py` gives a program


class WorkloadName(StrEnum):
    LINK = "link"
    MEMCPY = "memcpy"
    TRAIN = "train"
    ALLREDUCE = "allreduce"
    NCCL = "nccl"


class _ModelName(StrEnum):
    SMALL = "small"
    MOBILENETV2 = "mobilenetv2"
    RESNET50 = "resnet50"


class _PodMpi(StrEnum):
    OPENMPI = MpiName.OPENMPI.value
    MPICH = MpiName.MPICH.value


class Gradients(StrEnum):
    FP32 = "fp32"
    FP16 = "fp16"


# What benchmarks of all kinds are started with.
Interface = Annotated[str, typer.Option(metavar="NAME", help="The interface that ranks talk over.")]
LinkGbit = Annotated[
    float | None,
    typer.Option(
        "--link-gbit",
        min=0.001,
        metavar="GBIT",
        help="Line rate of the nodes' NICs, where the guests do not report it.",
    ),
]
LaunchLimit = Annotated[
    float, typer.Option("--max-time", min=10, metavar="SECONDS", help="End a launch after this long.")
]
ResultsFolder = Annotated[
    Path | None,
    typer.Option("--results", metavar="FOLDER", help="Results folder; an interrupted benchmark in it is resumed."),
]


@option_group
class MatrixOptions:
    """What is measured: everything is crossed with everything."""

    workload: Annotated[
        list[WorkloadName] | None, typer.Option(help="Workload to run; repeat the option for several.")
    ] = None
    nodes: Annotated[
        list[str] | None,
        typer.Option(metavar="N,...", help="Numbers of nodes, such as 1-4 or 1,2,8; default: all nodes."),
    ] = None
    slots: Annotated[
        int | None, typer.Option("--ranks-per-node", min=1, metavar="N", help="Ranks per node; default: one per GPU.")
    ] = None
    engine: Annotated[
        Engine | None, typer.Option(help="Framework that `train` runs on; default: the launcher's, or tensorflow.")
    ] = None
    launcher: Annotated[
        LauncherName | None, typer.Option(help="Launcher that starts the ranks; default: the engine's.")
    ] = None
    backend: Annotated[
        Backend | None,
        typer.Option(help="Library for the collectives; default: gloo, mpi with mpirun, nccl with torchrun on GPUs."),
    ] = None
    within: RanksRunIn = RunIn.GUEST
    transport: Annotated[list[Transport] | None, typer.Option(help="Network transport between nodes.")] = None


@option_group
class TrainOptions:
    """Of the workload `train`."""

    model: Annotated[_ModelName, typer.Option(help="Model to train.")] = _ModelName.SMALL
    batch: Annotated[int, typer.Option(min=1, metavar="N", help="Batch size per rank and step.")] = 32
    image: Annotated[
        int, typer.Option("--image-size", min=32, metavar="N", help="Image width and height, in pixels.")
    ] = 64
    gradients: Annotated[
        list[Gradients] | None, typer.Option("--compression", help="Gradient compression: none (fp32), or to fp16.")
    ] = None
    math: Annotated[
        list[Arithmetic] | None, typer.Option(help="Arithmetic: fp32, or mixed precision with TensorFlow.")
    ] = None
    xla: Annotated[
        bool, typer.Option("--xla", help="Compile the forward and backward pass with XLA, with TensorFlow.")
    ] = False
    steps: Annotated[int, typer.Option(min=2, metavar="N", help="Maximum number of steps per launch.")] = 200
    local_every: Annotated[
        int,
        typer.Option(min=0, metavar="N", help="Repeat every Nth step without communication, on a copy; 0: never."),
    ] = LOCAL_EVERY
    half_width: Annotated[
        float,
        typer.Option(
            "--ci-target",
            min=0,
            metavar="PERCENT",
            help="Stop training once the step time is known to ± this much; 0: never.",
        ),
    ] = 2.0
    seconds: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="Stop training after this long.", show_default="no limit")
    ] = 0.0
    least_nodes: Annotated[
        int,
        typer.Option(
            "--min-nodes",
            min=0,
            metavar="N",
            help="Elastic: keep training while at least N nodes are left; 0: fail when one is lost.",
        ),
    ] = 0

    def options(self) -> dict[str, str]:
        """Return what of these makes another configuration."""
        elastic = {"least_nodes": str(self.least_nodes)} if self.least_nodes else {}
        xla = {"xla": "on"} if self.xla else {}
        local = {"local-every": str(self.local_every)} if self.local_every != LOCAL_EVERY else {}
        return {"image": str(self.image), "steps": str(self.steps), **elastic, **local, **xla}


@option_group
class ScriptOptions:
    """A program of the user's own, in place of a workload."""

    script: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Run your own program on every rank instead of a workload.")
    ] = None
    arguments: Annotated[
        str, typer.Option("--script-args", metavar="ARGS", help="Arguments for --script, as one quoted string.")
    ] = ""

    def options(self) -> dict[str, str]:
        """Return what sets one program apart from another: a script that was changed is another configuration."""
        if self.script is None:
            return {}
        digest = hashlib.sha256()
        for piece in pieces(self.script):
            digest.update(piece)
        return {"script": self.script.name, "sha256": digest.hexdigest()[:16], "arguments": self.arguments}

    def words(self) -> tuple[str, ...]:
        """Return the program's arguments, split as a shell would."""
        try:
            return tuple(shlex.split(self.arguments))
        except ValueError as error:
            raise ConfigError(f"--script-args: {error}", code="usage", hint='--script-args "--epochs 1"') from error


@option_group
class SweepOptions:
    """Of the workloads `allreduce` and `nccl`."""

    sizes: Annotated[
        str, typer.Option(metavar="BYTES,...", help="Message sizes of `allreduce`, such as 64K,1M,64M.")
    ] = "1024,65536,1048576,4194304,16777216,67108864"
    sweeps: Annotated[
        int, typer.Option("--iters", min=1, metavar="N", help="Iterations per message size of `allreduce`.")
    ] = 10
    nccl_sizes: Annotated[
        str, typer.Option(metavar="FROM:TO", help="Smallest and largest message of `nccl`; sizes double.")
    ] = "8:1G"
    nccl_iterations: Annotated[
        int, typer.Option("--nccl-iters", min=1, metavar="N", help="Iterations per message size of `nccl`.")
    ] = 20

    def allreduce(self) -> dict[str, str]:
        """Return what of these makes another configuration of `allreduce`."""
        from vsphere_ml.bench.predict.arguments import message_sizes

        return {"sizes": ",".join(map(str, message_sizes(self.sizes))), "repeats": str(self.sweeps)}

    def nccl(self) -> dict[str, str]:
        """Return what of these makes another configuration of `nccl`, sizes as nccl-tests reads them.

        Those are bytes, with K, M or G for powers of 1024.
        """
        from vsphere_ml.bench.predict.arguments import MOST_BYTES

        match = re.fullmatch(r"([0-9]{1,12}[KMG]?):([0-9]{1,12}[KMG]?)", self.nccl_sizes, re.IGNORECASE)
        # Doubling 0 never comes to an end: nccl-tests would go on with it for ever.
        if match is None or not 1 <= _bytes(match[1]) <= _bytes(match[2]) <= MOST_BYTES:
            what = f"is not of the form 8:1G, from 1 byte to {MOST_BYTES >> 30} GiB"
            raise ConfigError(f"--nccl-sizes: {self.nccl_sizes!r} {what}", code="usage", hint="--nccl-sizes 8:1G")
        return {"smallest": match[1], "largest": match[2], "iterations": str(self.nccl_iterations)}


@option_group
class RepeatOptions:
    """How often each configuration is launched."""

    repeats: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Maximum number of launches per configuration; default: 5, with --script 1."
        ),
    ] = None
    repeats_half_width: Annotated[
        float,
        typer.Option(
            "--repeats-ci-target",
            min=0,
            metavar="PERCENT",
            help="Stop launching once five or more launches agree within ± this much.",
            show_default="never",
        ),
    ] = 0.0
    repeats_seconds: Annotated[
        float,
        typer.Option(
            min=0, metavar="SECONDS", help="Start no further repeat after this long.", show_default="no limit"
        ),
    ] = 0.0


@option_group
class SettingOptions:
    """How launches are made, and where the record goes."""

    variable: Annotated[
        list[str] | None,
        typer.Option(
            "--env", metavar="NAME=VALUE", help="Environment variable for every rank. It is recorded: never a secret."
        ),
    ] = None
    interface: Interface = ""
    rail: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="An interface that `--workload link` uses too, all at once; several times."),
    ] = None
    link_gbit: LinkGbit = None
    limit: LaunchLimit = 3600.0
    into: ResultsFolder = None


@option_group
class PodOptions:
    """Of `--run-in kubernetes`."""

    container_image: Annotated[
        str | None, typer.Option("--image", metavar="IMAGE", help="Container image with sshd and MPI that pods run.")
    ] = None
    namespace: Annotated[
        str | None, typer.Option(metavar="NAME", help="Namespace of the jobs.", show_default="the cluster's name")
    ] = None
    context: Annotated[
        str | None, typer.Option(metavar="NAME", help="Context of the kubeconfig instead of its current one.")
    ] = None
    rdma_resource: Annotated[
        str, typer.Option(metavar="rdma/NAME|nvidia.com/NAME", help="Resource by which pods ask for a NIC.")
    ] = "rdma/rdma_shared_device_a"
    rdma_network: Annotated[
        str | None, typer.Option(metavar="NAME", help="Network attachment on which pods have the NIC.")
    ] = None


@option_group
class PodImageOptions:
    """What is in the image that pods run."""

    mpi: Annotated[_PodMpi, typer.Option(help="MPI of the image that pods run.")] = _PodMpi.OPENMPI
    non_root: Annotated[
        bool,
        typer.Option("--non-root", help=f"Run the pods as {USER}, as in images of `vsml k8s image --non-root`."),
    ] = False

    def tools(self, guests: Tools) -> Tools:
        """Return what ranks run with in pods, where guests' user is nobody."""
        mpi = {_PodMpi.OPENMPI: OPEN_MPI, _PodMpi.MPICH: MPICH}[self.mpi]
        return replace(guests, mpi=mpi, user=USER if self.non_root else "root")


@option_group
class BenchOptions:
    """All options of `vsml bench run` beside the nodes."""

    matrix: MatrixOptions
    train: TrainOptions
    own: ScriptOptions
    sweep: SweepOptions
    repeat: RepeatOptions
    settings: SettingOptions
    pods: PodOptions
    image: PodImageOptions

    def check(self) -> None:
        """Raise ConfigError `usage` for what is no number."""
        from vsphere_ml.bench.predict.arguments import check_finite

        check_finite(self.train.half_width, self.train.seconds, self.settings.limit, self.settings.link_gbit)
        check_finite(self.repeat.repeats_half_width, self.repeat.repeats_seconds)


def bench_spec(given: BenchOptions, spec: ClusterSpec, most: int) -> BenchSpec:
    """Return what to measure on at most so many nodes; ConfigError `usage` for options that would be ignored."""
    from vsphere_ml.bench.launch.launchers import choose_backend
    from vsphere_ml.bench.launch.matrix import BenchSpec, check_spec
    from vsphere_ml.bench.model.record import Workload
    from vsphere_ml.bench.predict.arguments import node_counts

    asked, train, script = given.matrix, given.train, given.own.script
    counts = node_counts(",".join(asked.nodes)) if asked.nodes else (most,)
    _check_program(given, min(counts))
    engine, launcher = choose_engine(asked, train)
    made = BenchSpec(
        workloads=(Workload.SCRIPT,) if script else tuple(map(Workload, asked.workload or [WorkloadName.TRAIN])),
        nodes=counts,
        slots=asked.slots or min(node.gpu.count for node in spec.nodes),
        transports=tuple(asked.transport or [Transport.TCP]),
        gradients=tuple(train.gradients or [Gradients.FP32]),
        precisions=tuple(train.math or [Arithmetic.FP32]),
        engine=engine,
        launcher=launcher,
        backend=choose_backend(launcher, asked.backend, elastic=bool(train.least_nodes)),
        backend_named=asked.backend is not None,
        model=train.model,
        batch=train.batch,
        repeats=given.repeat.repeats or default_launches(script),
        within=asked.within,
        variables=read_variables(given.settings.variable or (), launcher),
        options={
            Workload.TRAIN: train.options(),
            Workload.SCRIPT: given.own.options(),
            Workload.ALLREDUCE: given.sweep.allreduce(),
            Workload.NCCL: given.sweep.nccl(),
        },
    )
    check_spec(made)
    return made


def choose_engine(asked: MatrixOptions, train: TrainOptions) -> tuple[Engine, LauncherName]:
    """Return what trains and what starts it; of the one that nobody names, what goes with the other.

    ConfigError `usage` for an engine that the launcher does not start, that a workload does not run on, or that has
    no such model or arithmetic.
    """
    of_launcher = (each.engine for each in ENGINES.values() if asked.launcher in each.launchers)
    engine = asked.engine or next(of_launcher, Engine.TENSORFLOW)
    launchers = ENGINES[engine].launchers
    # The launcher of an MPIJob starts mpirun.
    first = LauncherName.MPIRUN if asked.within is RunIn.KUBERNETES else launchers[0]
    launcher = asked.launcher or first
    if launcher not in launchers:
        raise ConfigError(
            f"{launcher} starts no ranks of {engine}", code="usage", hint=f"--launcher {' or '.join(launchers)}"
        )
    if train.model not in (models := ENGINES[engine].models or (train.model,)):
        raise ConfigError(
            f"{train.model} is not there for {engine}", code="usage", hint=f"--model {' or '.join(models)}"
        )
    _check_training(engine, train)
    if engine is not Engine.TENSORFLOW and WorkloadName.ALLREDUCE in (asked.workload or ()):
        raise ConfigError(
            f"`allreduce` is measured with TensorFlow's Horovod, and not with {engine}",
            code="usage",
            hint=f"--workload train, or --engine {Engine.TENSORFLOW}",
        )
    return engine, launcher


def _check_training(engine: Engine, train: TrainOptions) -> None:
    spec = ENGINES[engine]
    if train.least_nodes and not spec.is_elastic:
        raise ConfigError(f"{engine} is not elastic here", code="usage", hint=f"--engine {Engine.TENSORFLOW}")
    mixed = [each for each in train.math or () if each is not Arithmetic.FP32]
    if mixed and not spec.has_mixed_precision:
        hint = f"--engine {Engine.TENSORFLOW}, or --math {Arithmetic.FP32}"
        raise ConfigError(f"{engine} has no {mixed[0]} here", code="usage", hint=hint)
    if train.xla and not spec.has_xla:
        raise ConfigError(f"{engine} has no --xla here", code="usage", hint=f"--engine {Engine.TENSORFLOW}")


def launch_settings(given: BenchOptions, spec: ClusterSpec) -> LaunchSettings:
    """Return how launches are made, by the options and the cluster file."""
    from vsphere_ml.cli.bench.launch_settings import launch_settings
    from vsphere_ml.cli.bench.origin import origin
    from vsphere_ml.flows.bench.watch import Enough

    train, repeat, more = given.train, given.repeat, given.settings
    made = launch_settings(spec, given.matrix.within, more.interface, more.limit, tuple(more.rail or ()))
    return replace(
        made,
        tools=given.image.tools(made.tools) if given.matrix.within is RunIn.KUBERNETES else made.tools,
        enough=Enough(half_width=train.half_width / 100, seconds=train.seconds),
        enough_launches=Enough(half_width=repeat.repeats_half_width / 100, seconds=repeat.repeats_seconds),
        least_nodes=train.least_nodes,
        script=given.own.script,
        arguments=given.own.words(),
        origin=origin(spec.file, more.link_gbit),
    )


def site_values(given: PodOptions, spec: ClusterSpec) -> SiteValues:
    """Return what jobs are made with; ConfigError `kubernetes.value-missing` and `kubernetes.value-invalid`."""
    from vsphere_ml.kubernetes.bench_job import job_name
    from vsphere_ml.kubernetes.export.site_values import SiteValues, invalid_error, missing_error

    values = SiteValues(
        name=job_name(spec.name, "bench"),
        namespace=given.namespace,
        image=given.container_image or spec.guest.settings.get("image"),
        rdma_resource=given.rdma_resource,
        rdma_network=given.rdma_network,
    )
    error = invalid_error(values) or missing_error(values, ("image",))
    if error is not None:
        raise error
    return values


def default_launches(script: Path | None) -> int:
    """Return how often is launched when nobody says: a program of one's own once, else as often as a baseline needs."""
    from vsphere_ml.bench.gate.baseline import LAUNCHES

    return 1 if script else LAUNCHES


def _check_program(given: BenchOptions, smallest: int) -> None:
    """Raise ConfigError for options that would be ignored; `smallest` is of the launches, in nodes."""
    script, workload, least_nodes = given.own.script, given.matrix.workload, given.train.least_nodes
    if script is not None and workload:
        raise ConfigError("--script runs instead of a workload", code="usage", hint="one of --script and --workload")
    if given.own.arguments and script is None:
        raise ConfigError("--script-args are those of a program of yours", code="usage", hint="--script FILE")
    if least_nodes and (script is not None or WorkloadName.TRAIN not in (workload or [WorkloadName.TRAIN])):
        raise ConfigError("only `train` is elastic", code="usage", hint="--workload train, or no --min-nodes")
    if least_nodes > smallest:
        raise ConfigError(
            f"--min-nodes {least_nodes} is more than the {smallest} of the smallest launch",
            code="usage",
            hint=f"--min-nodes {smallest}, or other --nodes",
        )


def read_variables(given: Sequence[str], launcher: str) -> dict[str, str]:
    """Return `--env` options by name.

    ConfigError `usage` for what is none, or vsml's own, and `bench.launcher-variable` for what this launcher sets.
    """
    from vsphere_ml.bench.launch.launchers import check_variables

    pairs = [each.partition("=") for each in given]
    for entire, (name, equals, _) in zip(given, pairs, strict=True):
        if not equals or not _NAME.fullmatch(name) or name in _OWN:
            why = "is vsml's own" if name in _OWN else "is not NAME=VALUE"
            raise ConfigError(f"--env {entire} {why}", code="usage", hint="--env NCCL_ALGO=RING")
    variables = {name: value for name, _, value in pairs}
    check_variables(launcher, variables)
    return variables


def _bytes(text: str) -> int:
    return int(text.rstrip("KMGkmg")) << {"k": 10, "m": 20, "g": 30}.get(text[-1].lower(), 0)
