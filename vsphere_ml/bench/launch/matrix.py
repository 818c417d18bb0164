"""Which launches a spec comes to, in a fixed order: the smallest first, so that what is wrong shows early."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from vsphere_ml.bench.launch.launchers import find_gpu_backend
from vsphere_ml.bench.model.engines import Engine
from vsphere_ml.bench.model.job import OPEN_MPI, RunIn
from vsphere_ml.bench.model.launcher_names import Backend, LauncherName
from vsphere_ml.bench.model.record import WITHOUT_RANKS, Arithmetic, Configuration, Outcome, Workload
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.network.regimes import Regime
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vsphere_ml.bench.model.job import Runtime
    from vsphere_ml.bench.model.record import Run

REGIME = "regime"  # the option of a configuration
_WORKLOADS = (*sorted(WITHOUT_RANKS), Workload.ALLREDUCE, Workload.NCCL, Workload.TRAIN, Workload.SCRIPT)
_ALONE = frozenset({Workload.MEMCPY, Workload.TRAIN, Workload.SCRIPT})  # those that say something on one node
_TIMES = 5  # of a rank's step: its period, input, work, loss, and its part of a local step
MOST_STEP_TIMES = 6_000_000  # of a record: reading it takes most of what core.json_memory allows
_PAIR = 2  # what is measured between nodes needs two of them


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchSpec:
    """What to measure. Everything is crossed with everything; `nodes` are numbers of nodes."""

    workloads: tuple[Workload, ...] = (Workload.TRAIN,)
    nodes: tuple[int, ...]
    slots: int = 1  # ranks a node
    transports: tuple[Transport, ...] = (Transport.TCP,)
    link_transports: tuple[Transport, ...] = ()  # of the workload `link`; empty: those
    gradients: tuple[str, ...] = ("fp32",)
    precisions: tuple[Arithmetic, ...] = (Arithmetic.FP32,)  # of the workload `train`
    engine: Engine = Engine.TENSORFLOW
    launcher: str = LauncherName.HOROVODRUN
    backend: str = Backend.GLOO
    stacks: tuple[tuple[str, str], ...] = ()  # launchers and backends to cross with the rest; empty: those
    mpi: str = ""  # version, and whose it is where it is not Open MPI, of the guests'
    backend_named: bool = False  # by a person, and not the launcher's first
    model: str = "small"
    batch: int = 32
    regimes: tuple[Regime, ...] = ()  # of the workload `regimes`
    devices: int = 2  # workers of a regime in one machine
    servers: int = 2  # of a regime with several
    repeats: int = 1
    within: RunIn = RunIn.GUEST
    variables: Mapping[str, str] = field(default_factory=dict)  # set for every rank; these win
    options: Mapping[Workload, Mapping[str, str]] = field(default_factory=dict)  # what else changes a result


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedLaunch:
    """A launch to make, or the record of one that was made."""

    configuration: Configuration
    launch: int
    done: Run | None = None


def expand(spec: BenchSpec) -> tuple[Configuration, ...]:
    """Return each configuration once: by number of nodes, then workload, transport and gradients; then regimes."""
    between = (_regime(spec, each, nodes) for nodes in sorted(set(spec.nodes)) for each in _regimes(spec, local=False))
    regimes = (*(_regime(spec, each, 1) for each in _regimes(spec, local=True)), *between)
    return _expand_workloads(spec) + regimes if Workload.REGIMES in spec.workloads else _expand_workloads(spec)


def _regimes(spec: BenchSpec, *, local: bool) -> list[Regime]:
    return [each for each in Regime if each in spec.regimes and each.spec.local == local]


def _regime(spec: BenchSpec, regime: Regime, nodes: int) -> Configuration:
    """Return a regime's configuration; one between nodes is not possible on one node, and the launch says so."""
    what = regime.spec
    sharded = {"servers": str(spec.servers)} if what.sharded else {}
    return Configuration(
        workload=Workload.REGIMES,
        nodes=nodes,
        ranks=what.ranks or (spec.devices if what.local else nodes),
        launcher=what.launcher,
        backend=what.backend,
        model="perceptron",
        batch=spec.batch,
        options={
            **spec.options.get(Workload.REGIMES, {}),
            **sharded,
            REGIME: regime.value,
            **_variables_option(spec.variables),
        },
    )


def _expand_workloads(spec: BenchSpec) -> tuple[Configuration, ...]:
    return tuple(
        replace(
            _configuration(replace(spec, launcher=launcher, backend=backend), workload, nodes, transport, gradients),
            precision=precision,
        )
        for nodes in sorted(set(spec.nodes))
        for workload in _WORKLOADS
        if workload in spec.workloads and _says_something(spec, workload, nodes)
        for transport in _transports(spec, workload, nodes)
        for launcher, backend in _stacks(spec, workload)
        for gradients in (sorted(set(spec.gradients), reverse=True) if workload is Workload.TRAIN else ("fp32",))
        for precision in _precisions(spec, workload)
    )


def _precisions(spec: BenchSpec, workload: Workload) -> tuple[Arithmetic, ...]:
    if workload is not Workload.TRAIN:
        return (Arithmetic.FP32,)
    return tuple(each for each in Arithmetic if each in spec.precisions)


def check_spec(spec: BenchSpec) -> None:
    """Raise ConfigError `usage` when the spec comes to no launch, or to more step times than a record is read with.

    What is measured between nodes needs two of them.
    """
    configurations = expand(spec)
    if not configurations:
        named = ", ".join(each.value for each in spec.workloads)
        raise ConfigError(
            f"nothing to measure: {named} between nodes, and one node is asked for", code="usage", hint="--nodes 2"
        )
    _check_step_times(spec, sum(each.ranks for each in configurations if each.workload is Workload.TRAIN))


def _check_step_times(spec: BenchSpec, ranks: int) -> None:
    a_step = _TIMES * ranks * spec.repeats
    steps = int(spec.options.get(Workload.TRAIN, {}).get("steps", "0"))
    if a_step * steps > MOST_STEP_TIMES:
        raise ConfigError(
            f"{steps} steps are {a_step * steps:,} times to record, and a record of more than {MOST_STEP_TIMES:,} "
            "cannot be read",
            code="usage",
            hint=f"--steps {MOST_STEP_TIMES // a_step}" if a_step <= MOST_STEP_TIMES else "fewer `--repeats`",
        )


def _says_something(spec: BenchSpec, workload: Workload, nodes: int) -> bool:
    """Return whether a workload measures anything on so many nodes; copies inside a node it does once, on all."""
    if workload is Workload.MEMCPY:
        return nodes == max(spec.nodes)
    return nodes >= _PAIR or workload in _ALONE


def _transports(spec: BenchSpec, workload: Workload, nodes: int) -> tuple[Transport, ...]:
    """Return what is gone by, in the table's order: nothing leaves a node alone, nor does a copy inside it."""
    if nodes < _PAIR or workload is Workload.MEMCPY:
        return (Transport.TCP,)
    asked = (spec.link_transports or spec.transports) if workload is Workload.LINK else spec.transports
    return tuple(each for each in Transport if each in asked)


def _stacks(spec: BenchSpec, workload: Workload) -> tuple[tuple[str, str], ...]:
    """Return what starts ranks and what they talk over; links and nccl-tests have their own."""
    own = workload in WITHOUT_RANKS or workload is Workload.NCCL
    return ((spec.launcher, spec.backend),) if own or not spec.stacks else spec.stacks


def at_level(spec: BenchSpec, option: str, level: str) -> BenchSpec:
    """Return the spec with this option of every workload: what the guests are found in, which changes results."""
    options = {each: {**spec.options.get(each, {}), option: level} for each in spec.workloads}
    return replace(spec, options={**spec.options, **options})


def plan(spec: BenchSpec, recorded: Sequence[Run]) -> tuple[PlannedLaunch, ...]:
    """Return every launch in order; those that are complete in the record are not made again.

    A repeat is a whole launch, and each configuration is launched once before any is launched again: what drifts on
    the site then touches all alike.
    """
    complete = [run for run in recorded if run.outcome is Outcome.COMPLETE]
    planned = []
    for launch in range(1, spec.repeats + 1):
        for configuration in expand(spec):
            runs = [run for run in complete if is_same_configuration(run.configuration, configuration)]
            done = runs[launch - 1] if len(runs) >= launch else None
            planned.append(PlannedLaunch(configuration=configuration, launch=launch, done=done))
    return tuple(planned)


def over_nccl(spec: BenchSpec, gpus: Sequence[int]) -> BenchSpec:
    """Return the spec over NCCL if each rank has a GPU, unless a backend was named; `gpus` are those of each node."""
    backend = None if spec.backend_named else find_gpu_backend(spec.launcher, gpus, spec.slots)
    return replace(spec, backend=backend) if backend else spec


def over_mpi(spec: BenchSpec, runtime: Runtime) -> BenchSpec:
    """Return the matrix with MPI's name and version as an option of what goes over MPI: results differ by them."""
    version = ".".join(map(str, runtime.mpi_version))
    return replace(spec, mpi=version if runtime.mpi == OPEN_MPI else f"{runtime.mpi} {version}".rstrip())


def is_same_configuration(one: Configuration, other: Configuration) -> bool:
    """Return whether both were asked for alike. How many parameters the model has is only known afterwards."""
    return replace(one, parameters=None) == replace(other, parameters=None)


def _configuration(
    spec: BenchSpec, workload: Workload, nodes: int, transport: Transport, gradients: str
) -> Configuration:
    training = workload is Workload.TRAIN
    other = training and spec.engine is not Engine.TENSORFLOW
    launched, nccl = workload not in WITHOUT_RANKS, workload is Workload.NCCL
    inside = launched and spec.within is not RunIn.GUEST  # another configuration: other libraries, other results
    return Configuration(
        workload=workload,
        nodes=nodes,
        ranks=nodes * spec.slots if launched else nodes,
        transport=transport,
        launcher=LauncherName.MPIRUN if nccl else spec.launcher if launched else "",
        backend=Backend.NCCL if nccl else spec.backend if launched else "",
        model=spec.model if training else "",
        batch=spec.batch if training else None,
        gradients=gradients,
        options={
            **spec.options.get(workload, {}),
            **({"mpi": spec.mpi} if spec.mpi and launched and (nccl or spec.backend == Backend.MPI) else {}),
            **({"engine": spec.engine.value} if other else {}),
            **({"in": spec.within.value} if inside else {}),
            **(_variables_option(spec.variables) if launched else {}),
        },
    )


def _variables_option(variables: Mapping[str, str]) -> dict[str, str]:
    """Return variables as one option: a launch with other variables is another configuration."""
    pairs = " ".join(f"{name}={value}" for name, value in sorted(variables.items()))
    return {"variables": pairs} if pairs else {}
