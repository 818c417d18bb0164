from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.cli.views.lab import lab as view
from vsphere_ml.lab import server

if TYPE_CHECKING:
    from pathlib import Path

    from tests.golden import Golden


def descriptions(*paths: Path) -> list[str]:
    return [str(row[1]) for row in view.topologies({path.stem: path for path in paths}).rows]


def test_each_topology_that_ships_is_described_by_a_whole_sentence() -> None:
    texts = descriptions(*server.topologies().values())
    assert len(texts) >= 7
    assert all(each.endswith(".") and each.count(". ") == 0 for each in texts)


def test_a_sentence_may_take_several_lines_and_hold_versions(tmp_path: Path, golden: Golden) -> None:
    file = tmp_path / "site.toml"
    file.write_text("# Two hosts on 8.0.3, each\n# with a GPU. And more.\nschema = 1\n# Not this.\n")
    golden(descriptions(file))


def test_a_topology_without_a_comment_is_its_path(tmp_path: Path) -> None:
    file = tmp_path / "site.toml"
    file.write_text("schema = 1\n")
    assert descriptions(file) == [str(file)]
