from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.unit.kubernetes.image.trees import USER, lay_down

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Ended

BASE = ("--base", "nvcr.io/nvidia/tensorflow:23.03-tf2-py3")


def test_an_image_is_written_again_and_nobody_else_s_file_is_written_over(
    vsml: Callable[..., Ended], tmp_path: Path
) -> None:
    words = ("k8s", "image", *BASE, "--into", str(tmp_path / "image"))
    assert (vsml(*words).status, vsml(*words).status) == (0, 0)
    assert {each.name for each in (tmp_path / "image").iterdir()} == {"Containerfile", "ssh.conf", "sshd.conf"}
    (tmp_path / "image" / "ssh.conf").write_text("mine")
    ended = vsml(*words, "-o", "json")
    assert (ended.status, json.loads(ended.out)["errors"][0]["code"]) == (2, "config.exists")
    assert (tmp_path / "image" / "ssh.conf").read_text() == "mine"


def test_an_image_that_is_right_ends_with_0_and_another_with_2(vsml: Callable[..., Ended], tmp_path: Path) -> None:
    root = lay_down(tmp_path / "root", USER)
    assert vsml("k8s", "image", "--non-root", "--check", str(root)).status == 0
    ended = vsml("k8s", "image", "--check", str(root), "-o", "json")
    answer = json.loads(ended.out)
    assert ended.status == 2
    assert [each["code"] for each in answer["errors"]] == ["kubernetes.image-invalid"]
    assert "image-strict-modes" in {each["code"] for each in answer["data"]["diagnostics"]}
    shown = vsml("k8s", "image", "--check", str(root)).out
    assert f"{root}: error: " in shown.replace("\n", "")


@pytest.mark.parametrize(
    "words",
    [(), ("--base", "ubuntu"), ("--base", "a/b:1\nRUN x"), (*BASE, "--check", "x"), (*BASE, "--build", "t")],
)
def test_what_would_go_unheard_is_an_error_of_usage(vsml: Callable[..., Ended], words: tuple[str, ...]) -> None:
    ended = vsml("k8s", "image", *words, "-o", "json")
    assert (ended.status, json.loads(ended.out)["errors"][0]["code"]) == (2, "usage")


def test_without_a_folder_everything_is_shown(vsml: Callable[..., Ended]) -> None:
    ended = vsml("k8s", "image", *BASE, "--mpi", "intel")
    assert ended.status == 0
    assert "FROM nvcr.io/nvidia/tensorflow:23.03-tf2-py3" in ended.out
    assert "# entrypoint.sh" in ended.out
