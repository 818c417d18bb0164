"""How guests are reached: which are connected to before that is needed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.fakes.requirements import cluster
from vsphere_ml.cli.wiring import guest_wiring
from vsphere_ml.core.model.spec import JumpHost
from vsphere_ml.core.ports.vcenter import GuestPlace
from vsphere_ml.ssh.ahead import ConnectionsAhead

if TYPE_CHECKING:
    from collections.abc import Iterable

KNOWN = ("node-1", "node-3", "other")
PLACES = {name: GuestPlace(name=name, address=f"10.0.0.{name[-1]}", vm="vm-1") for name in KNOWN}


@pytest.mark.parametrize(
    ("jump", "parallel", "refresh", "begun"),
    [
        (None, 32, False, ["10.0.0.1", "10.0.0.3"]),
        (None, 1, False, ["10.0.0.1"]),
        (None, 32, True, []),
        (JumpHost(host="gate.test", user="me"), 32, False, []),
    ],
    ids=["known", "fewer at once", "asked anew", "behind a jump host"],
)
def test_connections_are_begun_to_the_nodes_whose_addresses_are_known(
    monkeypatch: pytest.MonkeyPatch, jump: JumpHost | None, parallel: int, *, refresh: bool, begun: list[str]
) -> None:
    seen: list[str] = []

    def begin(_self: ConnectionsAhead, addresses: Iterable[str], _port: int) -> None:
        seen.extend(addresses)

    monkeypatch.setattr(guest_wiring, "last_places", lambda _spec: PLACES)
    monkeypatch.setattr(ConnectionsAhead, "begin", begin)
    spec = cluster(3)
    guest_wiring.connect_ahead(replace(spec, guest=replace(spec.guest, jump=jump)), parallel, refresh=refresh)
    assert seen == begun
