"""`vsml export ansible --offline` writes an inventory and nothing else to stdout."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.unit.config.texts import ONE_NODE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from tests.golden import Golden
    from tests.unit.cli.conftest import Ended


def test_an_inventory_needs_no_vcenter(
    vsml: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setenv("VSML_STATE_DIR", str(tmp_path / "state"))
    file = tmp_path / "cluster.toml"
    file.write_text(ONE_NODE)
    ended = vsml("export", "ansible", str(file), "--offline")
    assert ended.status == 0
    golden(ended.err)
    golden(ended.out)
    data = json.loads(vsml("-o", "json", "export", "ansible", str(file), "--offline").out)["data"]
    assert (data["inventory"], data["skipped"]) == (ended.out, ["node-1"])


def test_what_is_of_a_lab_says_so(
    vsml: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setenv("VSML_STATE_DIR", str(tmp_path / "state"))
    file = tmp_path / "cluster.toml"
    file.write_text(f'{ONE_NODE}\n[vcenter]\nlab = "default"\n')
    golden(vsml("export", "ansible", str(file), "--offline").out)


def test_targets_of_prometheus_need_no_vcenter(
    vsml: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setenv("VSML_STATE_DIR", str(tmp_path / "state"))
    file = tmp_path / "cluster.toml"
    static = ONE_NODE.replace("[[nodes]]", '[[nodes]]\nnetwork = { address = "10.0.0.11/24", port_group = "vm" }')
    file.write_text(f'{static}\n[guest]\nplaybooks = ["monitoring"]\n')
    ended = vsml("export", "prometheus", str(file), "--offline")
    assert ended.status == 0, ended.err
    golden(ended.out)
    command = ("-o", "json", "export", "prometheus", str(file), "--offline", "--job", "dcgm")
    data = json.loads(vsml(*command).out)["data"]
    assert [group["targets"] for group in data["groups"]] == [["10.0.0.11:9400"]]
    assert data["skipped"] == []
