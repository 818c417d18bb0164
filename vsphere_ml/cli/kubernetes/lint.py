"""`vsml k8s lint`: jobs for Kubernetes, checked without a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from vsphere_ml.cli.commands import App
from vsphere_ml.cli.options import command
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from vsphere_ml.kubernetes.lint import LintedFile

app = App(help="Prepare jobs for Kubernetes.", no_args_is_help=True)
Files = Annotated[
    list[Path], typer.Argument(metavar="FILE...", help="YAML files with an MPIJob or a TrainJob; - is stdin.")
]


class _LintData(TypedDict):
    """What was found in each file."""

    files: tuple[LintedFile, ...]


@app.command()
@command
def lint(_terminal: Terminal, files: Files) -> Answer[_LintData]:
    """Check MPIJobs and TrainJobs before submission: fields, the operator's rules, ranks against slots, GPUs and RDMA.

    An API server takes most broken jobs, and the operator refuses them with an Event alone. Needs no cluster. Exits
    with 2 when a job would be refused, or would run as something else; warnings alone leave 0.

    Example: `vsml k8s lint job.yaml`, or `helm template . | vsml k8s lint -`
    """
    from vsphere_ml.cli.views.kubernetes import lint as view
    from vsphere_ml.kubernetes.lint import lint_error, lint_file

    linted = tuple(lint_file(_read(file), str(file)) for file in files)
    error = lint_error(linted)
    return Answer(
        text=view.text(linted),
        data={"files": linted},
        status=error.status if error else 0,
        errors=(error,) if error else (),
    )


def _read(file: Path) -> str:
    from vsphere_ml.cli.bench import files

    return files.stdin_text() if str(file) == "-" else files.text(file)
