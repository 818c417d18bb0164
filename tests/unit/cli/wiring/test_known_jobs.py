"""Names of jobs as this machine knows them: the latest first, and none that could be a path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.cli.wiring.known_jobs import KnownJobs

if TYPE_CHECKING:
    from pathlib import Path


def test_the_latest_is_the_first_and_a_listing_says_which_are_left(tmp_path: Path) -> None:
    known = KnownJobs(tmp_path / "jobs")
    known.add(["train-1"])
    known.add(["train-2"])
    known.keep(["train-3", "train-2"])
    assert known.names() == ["train-3", "train-2"]
    known.drop("train-3")
    assert known.names() == ["train-2"]


def test_a_name_that_a_node_made_up_is_no_path(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    known = KnownJobs(tmp_path / "jobs")
    known.keep(["../new", "a/b", "", ".hidden", "x" * 300, "train-1\n"])
    known.drop("../other")
    assert known.names() == []
    assert sorted(each.name for each in tmp_path.iterdir()) == ["jobs", "other"]


def test_a_folder_that_cannot_be_read_or_written_knows_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    known = KnownJobs(tmp_path / "file" / "jobs")
    known.add(["train-1"])
    assert known.names() == []
