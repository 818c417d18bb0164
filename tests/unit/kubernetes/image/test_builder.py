"""The builder that is found, its words, and what becomes of its failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from vsphere_ml.core.errors import NotPossible
from vsphere_ml.kubernetes.image.builder import BUILDERS, build_image


def place(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:/nowhere")
    return tmp_path


@pytest.mark.parametrize("builder", BUILDERS)
def test_each_builder_is_found_and_told_the_same(builder: str, programs: Path) -> None:
    place(programs, builder, 'echo "$@" >"$0.told"')
    assert build_image(Path("image"), "train:1") == builder
    told = (programs / f"{builder}.told").read_text().split()
    assert told == ["build", "--tag", "train:1", "--file", "image/Containerfile", "image"]


@pytest.mark.parametrize(("script", "code"), [(None, "kubernetes.no-builder"), ("exit 3", "kubernetes.build-failed")])
def test_no_builder_and_a_failed_build_are_told(script: str | None, code: str, programs: Path) -> None:
    if script is not None:
        place(programs, "podman", script)
    with pytest.raises(NotPossible) as raised:
        build_image(Path("image"), "train:1")
    assert (raised.value.code, raised.value.target) == (code, "train:1")
