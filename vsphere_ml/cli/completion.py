"""What a shell offers at a TAB for values: from the cluster file and the tables, never from a network.

Each function imports what it takes when it is asked, so that other commands pay nothing for it.
"""

from __future__ import annotations

from pathlib import Path

import typer  # noqa: TC002 - typer reads the annotations


def nodes(ctx: typer.Context) -> list[str]:
    """Return the nodes of the cluster file."""
    from vsphere_ml.config.outline import node_names

    return node_names(_file(ctx))


def paths_in_nodes(ctx: typer.Context) -> list[str]:
    """Return what the path of a file in a node begins with."""
    return [f"{name}:" for name in nodes(ctx)]


def jobs(ctx: typer.Context) -> list[str]:
    """Return the jobs of the cluster that this machine has started or listed, the latest first; no node is asked."""
    from vsphere_ml.bench.model.job import RunIn
    from vsphere_ml.cli.wiring.known_jobs import GUESTS, PODS, KnownJobs, guests_folder
    from vsphere_ml.config.outline import cluster_and_lab

    cluster, lab = cluster_and_lab(_file(ctx))
    kind = PODS if ctx.params.get("within") == RunIn.KUBERNETES else GUESTS
    return KnownJobs(guests_folder(cluster, lab) / kind).names() if cluster else []


def steps(ctx: typer.Context) -> list[str]:
    """Return the kinds of steps in the cluster file's playbooks."""
    from vsphere_ml.config.outline import step_kinds

    return step_kinds(_file(ctx))


def rules() -> list[tuple[str, str]]:
    """Return the rules, each with what it says."""
    from vsphere_ml.core.rules.table import RULES

    return [(rule.id, rule.summary) for rule in RULES]


def boards() -> list[tuple[str, str]]:
    """Return the codes of GPU boards that vsml has tables of, each with its title."""
    from vsphere_ml.core.catalog.boards import BOARDS

    return [(board.code, board.title) for board in BOARDS]


def vgpu_profiles() -> list[str]:
    """Return the C-series profiles of NVIDIA's tables."""
    from vsphere_ml.core.catalog import catalogue
    from vsphere_ml.core.catalog.boards import BOARDS

    return [str(each.name) for board in BOARDS for each in catalogue.profiles_of(board)]


def topologies() -> list[str]:
    """Return the sites that ship for labs."""
    from vsphere_ml.lab.state import TOPOLOGIES

    return sorted(each.stem for each in TOPOLOGIES.glob("*.toml"))


def labs() -> list[str]:
    """Return the labs that this machine has the state of."""
    from vsphere_ml.lab.folders import state

    root = state("default").parent
    return sorted(each.parent.name for each in root.glob("*/server.json"))


def guest_faults() -> list[str]:
    """Return the faults that a lab guest can have."""
    from vsphere_ml.lab.guests.fault_kinds import KINDS

    return list(KINDS)


def models() -> list[str]:
    """Return the models whose number of parameters is known."""
    from vsphere_ml.bench.predict.models import MODELS

    return list(MODELS)


def data_paths() -> list[str]:
    """Return the paths that gradients can be timed over."""
    from vsphere_ml.bench.predict.data_paths import ALL, PATHS

    return [ALL, *PATHS]


def roofline_gpus() -> list[str]:
    """Return the GPUs whose rooflines are known."""
    from vsphere_ml.bench.predict.roofline import GPUS

    return list(GPUS)


def collectives() -> list[str]:
    """Return the collectives of nccl-tests."""
    from vsphere_ml.bench.network.bus_bandwidth import COLLECTIVES

    return list(COLLECTIVES)


def _file(ctx: typer.Context) -> Path:
    """Return the cluster file of a line that is not finished."""
    from vsphere_ml.cli.options import DEFAULT_FILE, FILE_OPTION

    left = (each for each in reversed(ctx.args) if each.endswith(".toml"))  # before an option without its value
    return Path(ctx.params.get(FILE_OPTION) or next(left, None) or ctx.params.get("file") or DEFAULT_FILE)
