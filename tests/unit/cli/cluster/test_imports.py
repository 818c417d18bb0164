"""`vsml import vhpc` writes a new file, tells what it left out, and leaves what is there alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.unit.config.vhpc.test_vhpc import CONF

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.golden import Golden
    from tests.unit.cli.conftest import Ended


def test_a_file_is_written_once_and_told_of(vsml: Callable[..., Ended], tmp_path: Path, golden: Golden) -> None:
    conf, file = tmp_path / "train.conf", tmp_path / "cluster.toml"
    conf.write_text(CONF)
    made = vsml("import", "vhpc", str(conf), str(file))
    assert (made.status, made.out.endswith("cluster.toml: 8 nodes\n")) == (0, True)
    golden(made.err.replace("\n", ""))
    assert vsml("check", str(file)).status == 0
    file.write_text("mine")
    again = vsml("-v", "import", "vhpc", str(conf), str(file))
    assert (again.status, "config.exists" in again.err, file.read_text()) == (2, True, "mine")


def test_what_check_refuses_is_told_at_once(vsml: Callable[..., Ended], tmp_path: Path) -> None:
    conf, file = tmp_path / "train.conf", tmp_path / "cluster.toml"
    conf.write_text(CONF.replace("vgpu: grid_a100-40c", ""))
    found = json.loads(vsml("-o", "json", "import", "vhpc", str(conf), str(file)).out)
    assert [each["target"] for each in found["data"]["diagnostics"] if each["severity"] == "warning"] == ["gpu.profile"]
    assert [each["target"] for each in found["data"]["diagnostics"] if each["severity"] == "error"] == [
        "nodes[0].gpu.profile"
    ]


def test_a_wrong_file_leaves_nothing_behind(vsml: Callable[..., Ended], tmp_path: Path) -> None:
    conf, file = tmp_path / "train.conf", tmp_path / "cluster.toml"
    conf.write_bytes(b"\xff\xfe")
    assert vsml("import", "vhpc", str(conf), str(file)).status == 2
    conf.write_text("[_VMS_]\nvm1: NOWHERE\n")
    refused = vsml("import", "vhpc", str(conf), str(file))
    assert (refused.status, "train.conf:2: vm1: `NOWHERE`" in refused.err.replace("\n", "")) == (2, True)
    assert not file.exists()
