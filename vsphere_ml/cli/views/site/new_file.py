"""What `vsml init` wrote for a site."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, TypedDict

from vsphere_ml.cli.views.layout.text import line, lines
from vsphere_ml.core.order import count

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import RenderableType

    from vsphere_ml.cli.cluster.file_questions import NewFile


class _GpuData(TypedDict):
    kind: str
    profile: str | None


class BlankFileData(TypedDict):
    """The file that was written, to be filled in."""

    file: Path


class NewFileData(BlankFileData):
    """What the file that was written for a site says; at most `most_nodes` would fit."""

    cluster: str
    template: str
    datastore: str
    network: str
    nic_network: str | None
    nic_model: str | None
    gpu: _GpuData
    nodes: int
    most_nodes: int


def text(file: Path, found: NewFile) -> RenderableType:
    """Return the file's name, and what its nodes have."""
    answers = found.answers
    gpu = answers.gpu.profile or answers.gpu.kind
    nic = f", {answers.nic_model} on {answers.nic_network}" if answers.nic_model else ", no fast NIC"
    what = f"{count(answers.nodes, 'node')} of {answers.cpus} CPUs, {answers.memory_gib} GiB, {gpu}{nic}"
    then = f"then run: vsml plan {shlex.quote(str(file))}"
    return lines(line(f"wrote {file}: {what}; {found.most} would fit"), line(then))


def blank_text(file: Path) -> RenderableType:
    """Return the file's name, and what is to be done to it."""
    then = f"replace the <angle brackets>, then run: vsml check {shlex.quote(str(file))}"
    return lines(line(f"wrote {file}"), line(then))


def data(file: Path, found: NewFile) -> NewFileData:
    answers = found.answers
    return {
        "file": file,
        "cluster": answers.cluster,
        "template": answers.template,
        "datastore": answers.datastore,
        "network": answers.network,
        "nic_network": answers.nic_network if answers.nic_model else None,
        "nic_model": answers.nic_model or None,
        "gpu": {"kind": answers.gpu.kind, "profile": answers.gpu.profile or None},
        "nodes": answers.nodes,
        "most_nodes": found.most,
    }
