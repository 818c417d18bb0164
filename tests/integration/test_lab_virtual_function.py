"""RoCE on a virtual function in a minimal lab guest.

It has no settings of its port, which are the host's, and no kernel headers, without which DKMS builds nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fakes.converging import check, converge
from tests.integration import lone
from tests.integration.guests import needed
from vsphere_ml.core.errors import GuestError
from vsphere_ml.core.model.device_kinds import NicKind
from vsphere_ml.core.model.guest import GuestFacts, Peer
from vsphere_ml.guest.playbooks import playbook

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.lab, needed]
ADDRESS = "10.202.8.11"
VALUES = {"doca_url": "file:/opt/vsml-lab", "doca_trusted": "true"}


def facts(nic: NicKind) -> GuestFacts:
    me = Peer(name=lone.NAME, address=ADDRESS, roce_address="172.20.0.1")
    return GuestFacts(name=lone.NAME, cluster="train", peers=(me,), gpus=0, profile="", nic=nic, lab=True)


def test_the_playbook_builds_the_driver_and_converges_where_the_port_is_the_hosts(tmp_path: Path) -> None:
    with lone.guest(tmp_path / "guests", ADDRESS, nic="sriov") as guest, guest.enter() as shell:
        roce = playbook.load(playbook.find("roce", guest.home), values=VALUES)
        shell.write("/etc/apt/sources.list.d/lab.list", "deb [trusted=yes] file:/opt/vsml-lab ./\n")
        shell.run("apt-get update && apt-get install -y doca-ofed && ofed_info -s")
        assert "OFED" in [each.step for each in check(roce, shell, facts(NicKind.SRIOV)).pending]
        with pytest.raises(GuestError) as refused:
            converge(roce, shell, facts(NicKind.PASSTHROUGH), lambda _event: None)
        assert refused.value.code == "guest.step-failed"
        assert converge(roce, shell, facts(NicKind.SRIOV), lambda _event: None).changed
        assert check(roce, shell, facts(NicKind.SRIOV)).pending == ()
