"""A topology that cannot be read, or is no TOML, is told with its line before anything is started."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from vsphere_ml.core.errors import ConfigError
from vsphere_ml.lab import server, topology
from vsphere_ml.lab.guests.repository import packages

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("content", "line"),
    [(b"a = 1\n= 2\n", 2), (b"a = 1\nb = \xff\n", 2), (b"a = " + b"9" * 5000, 1), (b"a = " + b"[" * 5000, None)],
)
def test_what_is_no_toml_is_refused(content: bytes, line: int | None, tmp_path: Path) -> None:
    file = tmp_path / "site.toml"
    file.write_bytes(content)
    with pytest.raises(ConfigError) as raised:
        server.start_lab(str(file), name="never-started")
    assert raised.value.code == "lab.topology-invalid"
    assert [(each.file, each.line) for each in raised.value.problems] == [(str(file), line)]


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for file in (tmp_path / "pipe", tmp_path):
        with pytest.raises(ConfigError) as raised:
            topology.read(file)
        assert raised.value.code == "lab.topology-invalid"


def test_what_is_no_table_is_left_to_the_labs_program(tmp_path: Path) -> None:
    file = tmp_path / "site.toml"
    file.write_text("model = 1\n")
    assert packages.driver_version(file)


def test_the_reference_has_a_row_for_every_key_that_the_lab_reads() -> None:
    sources = (ROOT / "vsphere_ml" / "lab" / "vcenter" / "topology").glob("*.go")
    keys = {key for file in sources for key in re.findall(r'toml:"([a-z0-9_]+)', file.read_text())}
    lines = (ROOT / "docs" / "reference" / "lab-topology.md").read_text().splitlines()
    answers = {word for line in lines for cell in line.split("|")[1:3] for word in re.findall(r"[a-z0-9_]+", cell)}
    assert len(keys) > 80
    assert not keys - answers
