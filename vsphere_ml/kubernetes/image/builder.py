"""Builds an image with what is on this machine: docker, podman, nerdctl or buildah, which take the same words."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import NotPossible
from vsphere_ml.kubernetes.image.containerfile import CONTAINERFILE

if TYPE_CHECKING:
    from pathlib import Path

BUILDERS = ("docker", "podman", "nerdctl", "buildah")
_LINES = 10


def build_image(folder: Path, tag: str) -> str:
    """Build the image of a folder's Containerfile and return what built it; its output goes to stderr.

    NotPossible `kubernetes.no-builder` where nothing builds images, `kubernetes.build-failed` when it does not.
    """
    builder = next((each for each in BUILDERS if shutil.which(each)), None)
    words = ("build", "--tag", tag, "--file", str(folder / CONTAINERFILE), str(folder))
    if builder is None:
        raise NotPossible(
            f"none of {', '.join(BUILDERS)} is here",
            code="kubernetes.no-builder",
            target=tag,
            hint=f"where one is: docker {' '.join(words)}",
        )
    try:
        done = subprocess.run((builder, *words), stdout=subprocess.PIPE, check=False, text=True)  # noqa: S603 - found above
    except OSError as error:
        raise _build_error(builder, tag, str(error.strerror), ()) from error
    if done.returncode:
        raise _build_error(builder, tag, f"exit status {done.returncode}", tuple(done.stdout.splitlines()[-_LINES:]))
    return builder


def _build_error(builder: str, tag: str, why: str, details: tuple[str, ...]) -> NotPossible:
    return NotPossible(
        f"{builder} did not build {tag}: {why}",
        code="kubernetes.build-failed",
        target=tag,
        hint=f"what {builder} printed says why; `{builder} login` for a registry that wants it",
        details=details,
    )
