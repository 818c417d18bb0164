"""Builds the lab's programs once per checksum of their sources. Knows nothing of running them."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import NotPossible
from vsphere_ml.lab import folders, toolchain
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CACHED_BUILDS = 8  # builds of other checksums that stay in the cache
ERROR_LINES = 20


@dataclass(frozen=True, slots=True)
class Program:
    """A Go program of the lab: its name, the folder of its module, and its package in there."""

    name: str
    module: Path
    package: str
    takes: str = "about a minute"  # the first time, on two cores
    linker_flags: str = "-s -w"


LAB = Program("vsml-lab-vcenter", toolchain.SOURCES, "./cmd/vsml-lab-vcenter")
# Other people's programs, for cross-checks, in a module of their own so that the lab's build stays lean.
GOVC = Program("govc", toolchain.SOURCES / "crosscheck", "./cmd/govc")
VCSIM = Program("vcsim", toolchain.SOURCES / "crosscheck", "./cmd/vcsim")


def to_stderr(line: str) -> None:
    """Write one line of progress where it does not mix with data."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def binary(say: Callable[[str], None] = to_stderr) -> Path:
    """Return the lab vCenter's program, built when its sources changed."""
    return build_program(LAB, say)


def govc(say: Callable[[str], None] = to_stderr) -> Path:
    """Return govmomi's command line, for cross-checks."""
    return build_program(GOVC, say)


def vcsim(say: Callable[[str], None] = to_stderr) -> Path:
    """Return govmomi's unmodified simulator, for cross-checks."""
    return build_program(VCSIM, say)


def build_program(program: Program, say: Callable[[str], None]) -> Path:
    """Return `program` from the cache, or build it; NotPossible when that cannot be done here."""
    _linux_only()
    home = folders.cache() / checksum(program)
    path = home / program.name
    if path.exists():
        return path
    with folders.hold_lock(home.with_name(home.name + ".lock")):
        if not path.exists():  # somebody else may have built it while we waited
            _build(program, path, say)
    _forget_old_builds(keep=home)
    return path


def checksum(program: Program) -> str:
    """Return what names a build: every source that goes into it, and the Go version they ask for."""
    digest = hashlib.sha256(
        f"{program.package} {program.linker_flags} {toolchain.wanted_go_version(program.module)}\0".encode()
    )
    for source in sorted(_sources(program.module)):
        digest.update(f"{source.relative_to(program.module)}\0".encode())
        digest.update(source.read_bytes())
        digest.update(b"\0")
    return digest.hexdigest()[:32]


def _sources(module: Path) -> Iterator[Path]:
    nested = {mod.parent for mod in module.glob("*/**/go.mod")}
    for source in module.rglob("*"):
        if source.suffix not in {".go", ".mod", ".sh", ".sum", ".toml"} or source.name.endswith("_test.go"):
            continue
        if "testdata" not in source.parts and nested.isdisjoint(source.parents):
            yield source


def _build(program: Program, path: Path, say: Callable[[str], None]) -> None:
    go = toolchain.find(say, program.module)
    say(f"building {program.name} with {go} ({program.takes} the first time)")
    began = time.monotonic()
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        output = Path(scratch) / program.name
        try:
            done = subprocess.run(  # noqa: S603 - a toolchain we found, fixed arguments
                [go, "build", f"-ldflags={program.linker_flags}", "-o", output, program.package],
                cwd=program.module,
                env=toolchain.environment(go),
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            )
        except OSError as error:
            raise _build_failed(program, str(error)) from error
        if done.returncode or not output.exists():
            raise _build_failed(program, done.stdout + done.stderr)
        output.replace(path)
    say(f"built {path} in {time.monotonic() - began:.0f} s")


def _build_failed(program: Program, text: str) -> NotPossible:
    lines = tuple(text.strip().splitlines()[-ERROR_LINES:])
    offline = any("dial tcp" in line or "lookup " in line for line in lines)
    return NotPossible(
        f"building {program.name} failed",
        code="lab.build-failed",
        target=str(program.module),
        hint="its modules could not be downloaded; check the network, or set GOPROXY to a mirror you can reach"
        if offline
        else "",
        details=lines,
    )


def _forget_old_builds(keep: Path) -> None:
    # A lab that runs from a removed build goes on running; the system keeps its file until it ends.
    builds = [home for home in folders.cache().iterdir() if home.is_dir() and len(home.name) == len(keep.name)]
    others = sorted((home for home in builds if home != keep), key=lambda home: home.stat().st_mtime)
    for home in others[: -CACHED_BUILDS or None]:
        shutil.rmtree(home, ignore_errors=True)
        home.with_name(home.name + ".lock").unlink(missing_ok=True)


def _linux_only() -> None:
    if not sys.platform.startswith("linux"):
        raise NotPossible(
            "the lab vCenter runs on Linux only",
            code="lab.linux-only",
            target=f"{os.uname().sysname}",
            hint="run it in a Linux VM or container, and give its address as [vcenter] server",
        )


def main() -> None:
    """Build the lab vCenter and print where it lies; for scripts."""
    try:
        print(binary())  # noqa: T201 - a script's output
    except NotPossible as error:
        sys.exit("\n".join((f"error: {error.message}", *error.details, *([f"hint: {error.hint}"] * bool(error.hint)))))


if __name__ == "__main__":
    main()
