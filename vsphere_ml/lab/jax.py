"""Adds JAX for CPUs to what lab guests train with: `venv-jax`, which needs neither Horovod nor MPI."""

from __future__ import annotations

import hashlib
import shutil
import time
from typing import TYPE_CHECKING

from vsphere_ml.lab import folders, runtime

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PACKAGES = ("jax==0.10.2", "jaxlib==0.10.2", "ml_dtypes==0.6.0", "numpy==2.4.6", "opt_einsum==3.4.0", "scipy==1.17.1")
VENV = "venv-jax"


def make_jax(say: Callable[[str], None] = runtime.to_stderr) -> Path:
    """Return the folder of the runtime with `venv-jax` in it, both made first where they are not.

    NotPossible `lab.no-runtime` when the machine does not have all it takes, `lab.build-failed` when a step fails.
    """
    at = runtime.make_runtime(say)  # which empties its folder where it was not made yet
    done = at / f"made-jax-{hashlib.sha256(repr(PACKAGES).encode()).hexdigest()[:16]}"
    with folders.hold_lock(at.with_suffix(".lock")):
        if not done.exists():
            _make(at, say)
            done.touch()
    return at


def _make(at: Path, say: Callable[[str], None]) -> None:
    say(f"installing {PACKAGES[0]} for lab guests (600 MB, the first time)")
    began = time.monotonic()
    shutil.rmtree(at / VENV, ignore_errors=True)
    runtime.run("its environment", [runtime.PYTHON, "-m", "venv", at / VENV])
    runtime.run(PACKAGES[0], [at / VENV / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-deps", *PACKAGES])
    say(f"made {at / VENV} in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    runtime.by_script("vsphere_ml.lab.jax", make_jax)
