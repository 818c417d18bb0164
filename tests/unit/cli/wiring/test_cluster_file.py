"""A spec that is kept is taken for the file it was made of alone, and only where nobody else may have written it."""

from __future__ import annotations

import pickle
from dataclasses import replace
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest

from vsphere_ml.cli.wiring import cluster_file, site_wiring
from vsphere_ml.core.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from vsphere_ml.core.model.spec import ClusterSpec

TEXT = """\
[cluster]
name = "train"
[source]
template = "ubuntu"
[[nodes]]
name = "node-1"
cpus = 2
memory = "8GiB"
gpu = { profile = "A100-40C" }
nic = { kind = "none" }
network = { port_group = "vm-mgmt" }
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VSML_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "cluster.toml"
    path.write_text(TEXT)
    return path


def kept() -> Path:
    (only,) = (site_wiring.cache() / "files").iterdir()
    return only


def forge(spec: ClusterSpec) -> None:
    """Put another spec in the place of what was kept, for the same file."""
    content = kept().read_bytes()
    kept().write_bytes(content[:32] + pickle.dumps(spec))


def test_a_spec_that_was_kept_is_the_one_that_was_read(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = cluster_file.load(file)
    monkeypatch.setattr("vsphere_ml.config.load.load", pytest.fail)
    assert cluster_file.load(file) == first


def test_a_file_that_changed_is_read_anew_and_a_wrong_one_is_never_kept(file: Path) -> None:
    assert cluster_file.load(file).nodes[0].cpus == 2
    file.write_text(TEXT.replace("cpus = 2", "cpus = 4"))
    assert cluster_file.load(file).nodes[0].cpus == 4
    file.write_text(TEXT.replace("cpus", "cpu"))
    for _ in range(2):
        with pytest.raises(ConfigError):
            cluster_file.load(file)


@pytest.mark.parametrize("damage", ["cut", "writable file", "writable folder"])
def test_what_is_broken_or_may_be_of_somebody_else_is_not_believed(file: Path, damage: str) -> None:
    spec = cluster_file.load(file)
    forged = replace(spec, name="forged")
    forge(forged)
    assert cluster_file.load(file) == forged
    if damage == "cut":
        kept().write_bytes(kept().read_bytes()[:-9])
    else:
        (kept() if damage == "writable file" else kept().parent).chmod(0o777)
    assert cluster_file.load(file) == spec


def test_only_so_many_are_kept(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_file, "_MOST", 2)
    for number in range(4):
        other = file.with_name(f"{number}.toml")
        other.write_text(TEXT)
        cluster_file.load(other)
    assert len(list((site_wiring.cache() / "files").iterdir())) == 2


def test_a_cache_that_cannot_be_is_done_without(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VSML_CACHE_DIR", str(file / "cache"))
    assert cluster_file.load(file).name == "train"


def test_a_file_is_read_by_a_process_aside(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_file, "_may_fork", lambda: True)
    with cluster_file.reading_aside(file):
        pass
    monkeypatch.setattr("vsphere_ml.config.load.load", pytest.fail)
    monkeypatch.setattr("os.fork", pytest.fail)
    with cluster_file.reading_aside(file):
        assert cluster_file.load(file).name == "train"


def test_what_is_wrong_with_a_file_is_said_once(
    file: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cluster_file, "_may_fork", lambda: True)
    file.write_text(TEXT.replace("cpus", "cpu"))
    with cluster_file.reading_aside(file):
        pass
    assert capfd.readouterr() == ("", "")
    with pytest.raises(ConfigError):
        cluster_file.load(file)


def test_no_process_is_made_beside_threads(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fork", pytest.fail)
    over = Event()
    other = Thread(target=over.wait)
    other.start()
    with cluster_file.reading_aside(file):
        over.set()
    other.join()
    assert cluster_file.load(file).name == "train"
