"""`vsml doctor` where it cannot come to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vsphere_ml.cli.options import SiteOptions
from vsphere_ml.cli.site.doctor import doctor

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from tests.unit.cli.conftest import Shown


def test_a_missing_password_does_not_hide_where_the_rest_comes_from(
    tmp_path: Path, shown: Callable[..., Shown], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("VSML_VCENTER_PASSWORD", "GOVC_PASSWORD", "GOVC_URL", "VSPHERE_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    body: Any = doctor
    answer = body.__wrapped__(shown().terminal, site=SiteOptions(server="x.test", username="me@test"))
    assert (answer.status, [each.code for each in answer.errors]) == (2, ["secret.missing"])
    states = {each.target: each.severity for each in answer.fields()["checks"]}
    assert states == {"server": "ok", "username": "ok", "password": "error", "ca_file": "ok"}
