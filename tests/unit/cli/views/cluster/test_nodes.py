"""`vsml check` shows every node of a small cluster, and of a large one what its nodes have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.config.texts import CLUSTER, DEFAULTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.golden import Golden
    from tests.unit.cli.conftest import Ended


def rows(vsml: Callable[..., Ended], tmp_path: Path, nodes: str) -> list[str]:
    file = tmp_path / "cluster.toml"
    file.write_text(CLUSTER + DEFAULTS + nodes)
    ended = vsml("check", str(file))
    assert ended.status == 0, ended.err
    return ended.out.splitlines()


def test_each_node_of_a_small_cluster_has_a_row(vsml: Callable[..., Ended], tmp_path: Path) -> None:
    shown = rows(vsml, tmp_path, '[[nodes]]\nname = "node-[01-64]"\n')
    assert [line.split()[0] for line in shown if line.startswith("node-") and ":" not in line][:64] == [
        f"node-{at:02}" for at in range(1, 65)
    ]


def test_alike_nodes_of_a_large_cluster_are_one_row(vsml: Callable[..., Ended], tmp_path: Path) -> None:
    more = '[[nodes]]\nname = "big"\ncpus = 16\n'
    block = '[[nodes]]\nname = "node-[0001-8000]"\nnetwork = { address = "10.0.[0-31].[1-250]/16" }\n'
    shown = "\n".join(rows(vsml, tmp_path, block + more))
    for part in ("node-0001 … node-8000 (8000)", "10.0.0.1/16 … 10.0.31.250/16", "big "):
        assert part in " ".join(shown.split()), shown
    assert len(shown.splitlines()) < 40


def test_what_cannot_be_folded_is_counted(vsml: Callable[..., Ended], tmp_path: Path, golden: Golden) -> None:
    nodes = "".join(f'[[nodes]]\nname = "n{at}"\ncpus = {1 + at % 2}\n' for at in range(150))
    golden(rows(vsml, tmp_path, nodes))


def test_many_nodes_that_break_a_rule_are_folded_as_in_the_table(vsml: Callable[..., Ended], tmp_path: Path) -> None:
    shown = rows(vsml, tmp_path, '[[nodes]]\nname = "node-[0001-8000]"\n')
    assert [line for line in shown if line.startswith(("info: node-[0001-8000]: ", "warning: node-[0001-8000]: "))]
    assert max(map(len, shown)) < 400
