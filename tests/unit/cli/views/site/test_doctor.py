from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from vsphere_ml.cli.views.site import doctor as view
from vsphere_ml.config.secrets.sign_in import SignIn
from vsphere_ml.core.secret import Secret

if TYPE_CHECKING:
    from tests.golden import Golden

FOUND = SignIn(
    server="vc.test",
    username="me@test",
    password=Secret("hunter2-4711"),
    ca_file=Path("ca.pem"),
    thumbprint=None,
    insecure=False,
    where={
        "server": "GOVC_URL",
        "username": "GOVC_USERNAME",
        "password": "GOVC_PASSWORD",
        "ca_file": "GOVC_TLS_CA_CERTS",
        "insecure": "--insecure",
    },
)


def detail(found: SignIn) -> dict[str, tuple[str, str]]:
    checks = [*view.sources(found, view.password(found)), *view.sign_in_checks(found, "vCenter 8", "8.0.3.0")]
    return {each.target: (each.severity, each.message) for each in checks}


def test_each_part_says_where_it_comes_from_and_the_password_only_that() -> None:
    checks = detail(FOUND)
    assert checks["server"] == ("ok", "vc.test (from GOVC_URL)")
    assert checks["password"] == ("ok", "*** (from GOVC_PASSWORD)")
    assert checks["ca_file"] == ("ok", "ca.pem (from GOVC_TLS_CA_CERTS)")
    assert "hunter2" not in str(checks)


def test_no_verification_is_a_warning_not_an_ok() -> None:
    checks = detail(replace(FOUND, insecure=True))
    assert checks["insecure"][0] == "warning"
    assert checks["certificate"] == ("warning", "not verified")


def test_missing_privileges_are_named_and_unreadable_ones_are_said(golden: Golden) -> None:
    assert view.privileges(()).severity == "ok"
    golden(view.privileges(("Folder.Create",)).message)
    assert view.privileges(None).severity == "warning"
