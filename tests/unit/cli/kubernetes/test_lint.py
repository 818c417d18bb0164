from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.cli.conftest import Ended

RIGHT = Path(__file__).parents[2] / "kubernetes" / "job.yaml"


def test_a_right_job_ends_with_0_and_a_broken_one_with_2_and_its_place(
    vsml: Callable[..., Ended], tmp_path: Path
) -> None:
    broken = tmp_path / "job.yaml"
    broken.write_text(RIGHT.read_text().replace("    Worker:", "    worker:"))
    assert vsml("k8s", "lint", str(RIGHT)).status == 0
    ended = vsml("k8s", "lint", str(broken), "-o", "json")
    answer = json.loads(ended.out)
    (file,) = answer["data"]["files"]
    found = {each["code"]: each for each in file["diagnostics"]}
    assert ended.status == 2
    assert [each["code"] for each in answer["errors"]] == ["kubernetes.job-invalid"]
    assert set(found) == {"mpijob-unknown-role", "mpijob-no-worker"}
    assert found["mpijob-unknown-role"]["line"] == broken.read_text().splitlines().index("    worker:") + 1


def test_a_person_is_shown_the_line_and_the_rule(vsml: Callable[..., Ended], tmp_path: Path) -> None:
    broken = tmp_path / "job.yaml"
    broken.write_text(RIGHT.read_text().replace("slotsPerWorker", "slotPerWorker"))
    shown = " ".join(vsml("k8s", "lint", str(broken)).out.split())
    for part in (f"{broken}:6: error: ", "(mpijob-unknown-field)", "spec.slotPerWorker", "`slotsPerWorker`"):
        assert part in shown


@pytest.mark.parametrize(("data", "status"), [(RIGHT.read_bytes(), 0), (b"\xff", 2), (b"#" * (2 << 20), 2)])
def test_a_job_is_read_from_stdin(
    vsml: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch, data: bytes, status: int
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert vsml("k8s", "lint", "-").status == status


def test_a_file_that_is_not_there_is_named(vsml: Callable[..., Ended], tmp_path: Path) -> None:
    ended = vsml("k8s", "lint", str(tmp_path / "none.yaml"), "-o", "json")
    (error,) = json.loads(ended.out)["errors"]
    assert (ended.status, error["code"], error["target"]) == (2, "file.unreadable", str(tmp_path / "none.yaml"))
