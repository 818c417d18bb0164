"""The command line of `vsml runtime build`: what cannot be meant is refused before any node is looked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.parametrize(
    "line",
    [
        "--with nccl",
        "--with gloo,nvlink",
        "--with ,",
        "--framework mxnet",
        "--framework tensorflow-cpu",
        "--framework torch==2.4;reboot",
        "--run-in kubernetes",
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(
    vsml: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = vsml("runtime", "build", "-o", "json", *line.split())
    assert (ended.status, '"usage"' in ended.out) == (2, True)


def test_packages_are_a_folder(vsml: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ended = vsml("runtime", "build", "-o", "json", "--packages", "absent")
    assert (ended.status, '"file.unreadable"' in ended.out) == (2, True)
