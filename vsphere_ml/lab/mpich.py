"""Adds MPICH to what lab guests train with: its all-reduce keeps nearest to what a link allows.

MPICH and Open MPI do not share a binary interface, so Horovod is built once more, over MPI alone. `venv-mpich` has that
Horovod and sees all else in `venv`: TensorFlow is there once.
"""

from __future__ import annotations

import hashlib
import shutil
import time
from typing import TYPE_CHECKING

from vsphere_ml.core.tools.horovod import HOROVOD, Carrier, FrameworkName, build_settings
from vsphere_ml.lab import folders, runtime

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MPICH = "mpich==5.0.2"
FLAGS = build_settings(FrameworkName.TENSORFLOW, {Carrier.MPI})
BUILT = "import horovod.tensorflow as hvd, tensorflow; assert hvd.mpi_built() and not hvd.gloo_built()"
FOLDER, VENV = "mpich", "venv-mpich"


def make_mpich(say: Callable[[str], None] = runtime.to_stderr) -> Path:
    """Return the folder of the runtime with `mpich` and `venv-mpich` in it, both made first where they are not.

    NotPossible `lab.no-runtime` when the machine does not have all it takes, `lab.build-failed` when a step fails.
    """
    at = runtime.make_runtime(say)
    if (at / _done_name()).exists():
        return at
    with folders.hold_lock(at.with_suffix(".lock")):
        if not (at / _done_name()).exists():
            _make(at, say)
    return at


def _done_name() -> str:
    recipe = repr((MPICH, sorted(FLAGS.items())))
    return f"made-mpich-{hashlib.sha256(recipe.encode()).hexdigest()[:16]}"


def _make(at: Path, say: Callable[[str], None]) -> None:
    say(f"building {HOROVOD} over {MPICH} for lab guests (about 2 minutes on 2 cores, the first time)")
    began = time.monotonic()
    for name in (FOLDER, VENV, "wheels-mpich"):
        shutil.rmtree(at / name, ignore_errors=True)
    runtime.install(at, MPICH, "--no-deps", "--ignore-installed", "--prefix", at / FOLDER, MPICH)
    wheel = runtime.build_horovod(at, FOLDER, at / "wheels-mpich", FLAGS)
    runtime.run("its environment", [runtime.PYTHON, "-m", "venv", "--without-pip", at / VENV])
    (site,) = (at / VENV / "lib").glob("python3*/site-packages")
    runtime.install(at, HOROVOD, "--no-deps", "--target", site, wheel)
    # By a relative path: guests have the folder elsewhere.
    (site / "all-else.pth").write_text(f"../../../../venv/lib/{site.parent.name}/site-packages\n")
    check = [at / VENV / "bin" / "python", "-c", BUILT]
    runtime.run("Horovod's check", check, {"LD_LIBRARY_PATH": str(at / FOLDER / "lib")})
    (at / _done_name()).touch()
    say(f"made {at / VENV} in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    runtime.by_script("vsphere_ml.lab.mpich", make_mpich)
