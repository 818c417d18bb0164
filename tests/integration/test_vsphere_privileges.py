from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyVmomi import vim

from vsphere_ml.vsphere import privileges
from vsphere_ml.vsphere.connection.session import connect
from vsphere_ml.vsphere.connection.tls import Trust

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.lab.state import Lab
    from vsphere_ml.vsphere.connection.session import Session

pytestmark = pytest.mark.lab


@pytest.fixture
def session(lab: Lab) -> Iterator[Session]:
    made = connect(lab.address, lab.username, lab.password(), Trust(ca_file=lab.ca_file))
    yield made
    made.close()


def test_an_administrator_lacks_nothing(session: Session) -> None:
    assert privileges.missing_privileges(session) == ()


def test_what_is_granted_nowhere_is_named(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def limited(entity: list[object], sessionId: str, privId: list[str]) -> list[object]:  # noqa: N803 - the API's names
        availabilities = [
            vim.AuthorizationManager.PrivilegeAvailability(privId=each, isGranted=each != "Folder.Create")
            for each in privId
        ]
        return [
            vim.AuthorizationManager.EntityPrivilege(entity=each, privAvailability=availabilities) for each in entity
        ]

    # The lab grants everything, as the simulator does, so the answer of a limited account is made here.
    monkeypatch.setattr(type(session.content.authorizationManager), "HasPrivilegeOnEntities", staticmethod(limited))
    assert privileges.missing_privileges(session) == ("Folder.Create",)


def test_a_vcenter_that_does_not_tell_is_no_error(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(**_: object) -> None:
        raise vim.fault.NoPermission

    monkeypatch.setattr(type(session.content.authorizationManager), "HasPrivilegeOnEntities", staticmethod(refused))
    assert privileges.missing_privileges(session) is None
