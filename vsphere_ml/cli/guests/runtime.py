"""`vsml runtime build`: a wheelhouse with a Horovod for the nodes' GPUs, which no index has."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vsphere_ml.bench.model.job import RunIn
from vsphere_ml.cli import completion
from vsphere_ml.cli.commands import App
from vsphere_ml.cli.options import DEFAULT_FILE, ClusterFile, Refresh, command, option_group
from vsphere_ml.cli.terminal import Answer, Terminal
from vsphere_ml.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.cli.views.guests.wheelhouse import WheelhouseData
    from vsphere_ml.core.tools.horovod import Carrier, Framework
    from vsphere_ml.guest.wheelhouse.build import WheelhouseRequest

app = App(no_args_is_help=True, help="Build what nodes train with, where no package index has it.")


@option_group
class _BuildOptions:
    node: Annotated[
        str | None,
        typer.Option(
            metavar="NODE", help="Node to build in; default: the first of the file.", autocompletion=completion.nodes
        ),
    ] = None
    framework: Annotated[
        str, typer.Option(metavar="tensorflow|pytorch|NAME==VERSION", help="Framework to build Horovod against.")
    ] = "tensorflow"
    carriers: Annotated[
        str, typer.Option("--with", metavar="LIST", help="What Horovod goes by: of nccl, mpi, gloo.")
    ] = "nccl,gloo"
    into: Annotated[Path, typer.Option(metavar="DIR", help="New folder for the wheels and their manifest.")] = Path(
        "wheelhouse"
    )
    packages: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of sdists and wheels to build from, for a node without an index."),
    ] = None
    within: Annotated[
        RunIn, typer.Option("--run-in", "--in", help="Build in the guest, or in its training container.")
    ] = RunIn.GUEST
    refresh: Refresh = False


@app.command()
@command
def build(terminal: Terminal, file: ClusterFile = DEFAULT_FILE, *, given: _BuildOptions) -> Answer["WheelhouseData"]:
    """Build Horovod in one node against a framework, and bring its wheel and all that it needs to this machine.

    The folder is what the playbook `runtime` installs on all nodes without an index, as its setting `wheelhouse`.
    Nothing is left in the node. NCCL needs CUDA and NCCL's headers there, MPI an `mpirun` with `mpicxx` beside it.

    Example: `vsml runtime build cluster.toml --node node-1 --framework pytorch --with nccl,gloo`
    """
    from vsphere_ml.cli.jobs.options import open_nodes
    from vsphere_ml.cli.views.guests import wheelhouse as view
    from vsphere_ml.cli.views.progress.both_listeners import following_both
    from vsphere_ml.flows.guests.wheelhouse import build_wheelhouse

    _check(given)
    into = given.into.resolve()
    nodes = open_nodes(terminal, file, refresh=given.refresh, only=[given.node] if given.node else None)
    asked = _request(nodes.spec.guest.settings, given)
    (place,) = nodes.places.of([nodes.spec.nodes[0].name])
    with following_both(terminal.err) as both:
        made = build_wheelhouse(nodes.guests, place, asked, into=into, notify=both.guests)
    return Answer(text=view.text(made, into), data=view.data(made, into))


def _read_framework(text: str) -> tuple[Framework, str]:
    from vsphere_ml.core.tools.horovod import find_package
    from vsphere_ml.guest.steps.mpi.runtime import REQUIREMENT

    found = find_package(text)
    if found is None or not REQUIREMENT.fullmatch(found[1]):
        hint = "tensorflow, pytorch, or a package with its version such as tensorflow-cpu==2.21.0"
        raise ConfigError(f"--framework {text}: no such framework", code="usage", hint=hint)
    return found


def _read_carriers(text: str) -> tuple[Carrier, ...]:
    from vsphere_ml.core.tools.horovod import CONTROLLERS, Carrier

    names = text.replace(",", " ").split()
    unknown = [name for name in names if name not in [*Carrier]]
    carriers = tuple(each for each in Carrier if each in names)
    if unknown or CONTROLLERS.isdisjoint(carriers):
        why = f"{unknown[0]} is none of {', '.join(Carrier)}" if unknown else "ranks find each other by gloo or mpi"
        raise ConfigError(f"--with {text}: {why}", code="usage", hint="--with nccl,gloo")
    return carriers


def _check(given: _BuildOptions) -> None:
    """Raise ConfigError for what cannot be meant, before any node is looked for."""
    _read_framework(given.framework)
    _read_carriers(given.carriers)
    if given.within is RunIn.KUBERNETES:
        raise ConfigError("--run-in kubernetes: an image brings its own Horovod", code="usage", hint="--run-in guest")
    if given.packages is not None and not given.packages.is_dir():
        raise ConfigError(
            f"{given.packages} is no folder", code="file.unreadable", target=str(given.packages), hint="--packages DIR"
        )


def _request(settings: Mapping[str, str], given: _BuildOptions) -> WheelhouseRequest:
    from vsphere_ml.guest.wheelhouse.build import WheelhouseRequest

    framework, package = _read_framework(given.framework)
    in_container = given.within is RunIn.CONTAINER
    return WheelhouseRequest(
        framework=framework,
        package=package,
        carriers=_read_carriers(given.carriers),
        packages=given.packages,
        index=settings.get("package_index", ""),
        python=settings.get("container_python", "python3") if in_container else "python3",
        mpirun=settings.get("container_mpirun" if in_container else "mpirun", ""),
        in_container=in_container,
        settings=settings,
    )
