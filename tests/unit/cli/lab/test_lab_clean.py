from __future__ import annotations

import json
from typing import TYPE_CHECKING

from vsphere_ml.lab import folders

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from tests.golden import Golden
    from tests.unit.cli.conftest import Ended


def test_the_cache_is_removed_and_summed_up(
    vsml: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setenv("VSML_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("VSML_STATE_DIR", str(tmp_path / "state"))
    for name in ("runtime-1", "runtime-2"):
        (folders.cache() / name).mkdir(parents=True)
        (folders.cache() / name / "made").write_bytes(b"x" * 5000)
    with folders.hold_lock(folders.cache() / "runtime-2.lock"):
        ended = vsml("lab", "build", "--clean", "-o", "json")
    result = json.loads(ended.out)["data"]
    assert ended.status == 0
    assert [each["name"] for each in result["removed"]] == ["runtime-1"]
    assert [each["name"] for each in result["in_use"]] == ["runtime-2"]
    assert result["bytes"] == result["removed"][0]["bytes"] >= 5000
    shown = vsml("lab", "build", "--clean").out.splitlines()
    assert shown[1].split()[0] == "runtime-2"
    assert shown[-1].startswith("removed 1 thing, ")
    golden(vsml("lab", "build", "--clean").out)
