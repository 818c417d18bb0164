"""`vsml rules`, and what `vsml check` says of rules, without a vCenter."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.unit.config.texts import ONE_NODE
from vsphere_ml.core.rules.table import RULES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.golden import Golden
    from tests.unit.cli.conftest import Ended


def test_all_rules_are_listed_by_default(vsml: Callable[..., Ended]) -> None:
    listed = vsml("rules")
    assert listed.status == 0
    assert all(rule.id in listed.out for rule in RULES)
    found = json.loads(vsml("rules", "-o", "json").out)
    assert [each["number"] for each in found["data"]] == list(range(1, 40))
    assert found["command"] == "rules list"


def test_a_rule_is_explained_with_its_sources(vsml: Callable[..., Ended], golden: Golden) -> None:
    why = vsml("rules", "why", "12")
    golden(why.out)
    golden(vsml("rules", "why", "alike-in-a-job").out)
    unknown = vsml("rules", "why", "nvlink")
    assert (unknown.status, "rule.unknown" in vsml("-v", "rules", "why", "nvlink").err) == (2, True)


def test_check_names_gpus_that_are_handed_through_whole(vsml: Callable[..., Ended], tmp_path: Path) -> None:
    file = tmp_path / "cluster.toml"
    entire = 'gpu = { kind = "passthrough", device = "10de:20f1", count = 2 }'
    file.write_text(ONE_NODE.replace('gpu = { profile = "A100-40C" }', entire))
    assert "2 × 10de:20f1" in vsml("check", str(file)).out


def test_check_tells_rules_beside_the_nodes(vsml: Callable[..., Ended], tmp_path: Path, golden: Golden) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text(ONE_NODE.replace('"A100-40C" }', '"A100-40C", count = 2 }'))
    ended = vsml("check", str(file))
    assert ended.status == 0
    golden(ended.out)
    diagnostics = json.loads(vsml("check", str(file), "-o", "json").out)["data"]["diagnostics"]
    assert {(each["code"], each["severity"], *each["details"]) for each in diagnostics} == {
        ("no-pcie-peers", "warning", "node-1"),
        ("nccl-memory-pools", "info", "node-1"),
    }


def test_a_file_that_breaks_one_is_refused_with_its_line(
    vsml: Callable[..., Ended], tmp_path: Path, golden: Golden
) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text(ONE_NODE.replace('"A100-40C" }', '"A100-40C", kind = "nvlink", count = 2 }\nhardware_version = 19'))
    refused = vsml("check", str(file))
    assert refused.status == 2
    assert "cluster.toml:11" in refused.err
    golden(refused.err)
