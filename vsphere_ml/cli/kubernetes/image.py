"""`vsml k8s image`: the container image of an MPIJob, written, built and checked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from vsphere_ml.cli.kubernetes.lint import app
from vsphere_ml.cli.options import command, option_group
from vsphere_ml.cli.terminal import Answer, Terminal
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.kubernetes.image.variants import MpiName

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.core.diagnostics import Diagnostic
    from vsphere_ml.kubernetes.image.containerfile import ImageSpec
    from vsphere_ml.kubernetes.image.variants import SshdVariant


@option_group
class _ImageOptions:
    """What the image is built on, and where it goes."""

    base: Annotated[
        str | None,
        typer.Option(
            metavar="IMAGE", help="Image with MPI and what trains, such as one of NGC or NVIDIA AI Enterprise."
        ),
    ] = None
    mpi: Annotated[MpiName, typer.Option(help="MPI of the base.")] = MpiName.OPENMPI
    non_root: Annotated[bool, typer.Option("--non-root", help="Run sshd as a user, on port 2222.")] = False
    into: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Write the Containerfile and its files here.")] = (
        None
    )
    build: Annotated[
        str | None,
        typer.Option(metavar="TAG", help="Build it under this name, by docker, podman, nerdctl or buildah."),
    ] = None


Check = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="PATH",
        help="Check a root file system, a tar of one, or an OCI or `docker save` archive; with several also that their "
        "MPIs are the same.",
    ),
]


class _ImageData(TypedDict):
    """The image's files by name, the folder that they were written to, and what has built it."""

    files: Mapping[str, str]
    folder: Path | None
    builder: str | None


class _CheckedImagesData(TypedDict):
    """What breaks the contract, each with its rule as `code`, its image as `file` and the path in it as `target`."""

    images: list[str]
    diagnostics: tuple[Diagnostic, ...]


@app.command()
@command
def image(
    _terminal: Terminal, *, given: _ImageOptions, check: Check = None
) -> Answer["_ImageData | _CheckedImagesData"]:
    """Write the image of an MPIJob on a base of yours, build it, or check one that is there.

    mpi-operator wants an sshd that takes the job's key, and the same MPI in launcher and workers; images of NGC have no
    sshd. Checking needs neither a container engine nor a cluster, and exits with 2 when a job would not run with it.

    Example: `vsml k8s image --base nvcr.io/nvidia/tensorflow:23.03-tf2-py3 --into image`, or
    `vsml k8s image --check image.tar`
    """
    from vsphere_ml.kubernetes.image.containerfile import ImageSpec
    from vsphere_ml.kubernetes.image.variants import AS_USER, ROOT

    variant = AS_USER if given.non_root else ROOT
    if check and (given.base or given.into or given.build):
        raise ConfigError("--check looks at an image that is there", code="usage", hint="--check PATH alone")
    if check:
        return _check(check, variant)
    _require_base(given)
    return _write(ImageSpec(base=str(given.base), variant=variant, mpi=given.mpi), given.into, given.build)


def _require_base(given: _ImageOptions) -> None:
    from vsphere_ml.kubernetes.export.site_values import is_image

    if given.base is None or not is_image(given.base):
        why = "nothing says what the image is built on" if given.base is None else f"`{given.base}` is no image"
        raise ConfigError(
            why, code="usage", target="--base", hint="--base nvcr.io/nvidia/tensorflow:23.03-tf2-py3, or --check PATH"
        )
    if given.build is not None and given.into is None:
        raise ConfigError("--build builds what --into has written", code="usage", hint="--into FOLDER --build TAG")


def _check(paths: list[Path], variant: SshdVariant) -> Answer[_CheckedImagesData]:
    from vsphere_ml.cli.views.kubernetes import image as view
    from vsphere_ml.kubernetes.image.contract import check_images, contract_error
    from vsphere_ml.kubernetes.image.read_image import read_image

    found = check_images([read_image(path) for path in paths], variant)
    error = contract_error(found)
    return Answer(
        text=view.text([str(path) for path in paths], found),
        data={"images": [str(path) for path in paths], "diagnostics": found},
        status=error.status if error else 0,
        errors=(error,) if error else (),
    )


def _write(spec: ImageSpec, into: Path | None, build: str | None) -> Answer[_ImageData]:
    from vsphere_ml.cli.views.layout.verbatim import VerbatimText
    from vsphere_ml.kubernetes.image.builder import build_image
    from vsphere_ml.kubernetes.image.containerfile import make_image_files

    files = make_image_files(spec)
    if into is None:
        shown = "\n".join(f"# {name}\n{text}" for name, text in files.items())
        return Answer(text=VerbatimText(shown), data={"files": files, "folder": None, "builder": None})
    _write_files(into, files)
    builder = build_image(into, build) if build else None
    lines = [*(str(into / name) for name in files), *([f"{build}: built by {builder}"] if builder else [])]
    return Answer(text=VerbatimText("\n".join(lines)), data={"files": files, "folder": into, "builder": builder})


def _write_files(folder: Path, files: Mapping[str, str]) -> None:
    from vsphere_ml.cli.bench.files import replace
    from vsphere_ml.cli.kubernetes.export_folder import prepare_folder
    from vsphere_ml.kubernetes.image.containerfile import MADE_BY

    prepare_folder(folder, files, MADE_BY)
    for name, text in files.items():
        replace(folder / name, text.encode())
