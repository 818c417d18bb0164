"""A Python environment from a folder of wheels on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.guest.cluster import facts
from tests.unit.guest.recorder import Recorder
from vsphere_ml.guest.playbooks.fields import FieldError, WheelhouseSource
from vsphere_ml.guest.steps.mpi.runtime import PythonRuntime

if TYPE_CHECKING:
    from pathlib import Path

PACKAGES = ("horovod==0.28.1",)


def test_the_wheels_of_a_folder_are_brought_and_no_index_is_asked(tmp_path: Path) -> None:
    for name in ("b-1-py3-none-any.whl", "a-1-py3-none-any.whl", "manifest.json"):
        (tmp_path / name).touch()
    source = WheelhouseSource(tmp_path)
    assert source.is_here()
    shell = Recorder()
    PythonRuntime(packages=PACKAGES, wheelhouse=source).apply(shell, facts())
    brought = [each.split()[1:] for each in shell.told if each.startswith("put")]
    assert brought == [
        [f"{tmp_path}/{name}", f"/var/cache/vsml/wheelhouse/{name}"]
        for name in ("a-1-py3-none-any.whl", "b-1-py3-none-any.whl")
    ]
    assert shell.told[1] == "rm -rf /var/cache/vsml/wheelhouse && mkdir -p /var/cache/vsml/wheelhouse"
    assert "--no-index --find-links /var/cache/vsml/wheelhouse horovod==0.28.1" in shell.told[-1]


def test_a_folder_without_wheels_is_not_here(tmp_path: Path) -> None:
    assert not WheelhouseSource(tmp_path).is_here()
    assert not WheelhouseSource(tmp_path / "absent").is_here()
    (tmp_path / "wheels.tar").mkdir()
    assert not WheelhouseSource(tmp_path / "wheels.tar").is_here()


@pytest.mark.parametrize(
    ("source", "sha256", "field"),
    [
        ("https://mirror.example.com/wheels", "", "wheelhouse"),
        ("[nas] wheels", "", "wheelhouse"),
        ("/srv/wheels.zip", "", "wheelhouse"),
        ("/srv/wheels", "0" * 64, "wheelhouse_sha256"),
    ],
)
def test_what_is_neither_an_archive_nor_a_folder_is_refused(source: str, sha256: str, field: str) -> None:
    with pytest.raises(FieldError) as refused:
        PythonRuntime(packages=PACKAGES, wheelhouse=WheelhouseSource(source), wheelhouse_sha256=sha256)
    assert refused.value.field == field
