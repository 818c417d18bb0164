"""What a guest is told by its template's disk, by guestinfo and by a customization, and which of them counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.lab.guests.boot import firstboot
from vsphere_ml.lab.guests.boot.firstboot import LabVm

if TYPE_CHECKING:
    from pathlib import Path

GUESTINFO = {
    "guestinfo.metadata": "local-hostname: by-cloud-init\n",
    "guestinfo.userdata": "#cloud-config\nusers:\n  - name: ubuntu\n",
}
BAKED = {"cloud_init": False, "user": "admin", "authorized_keys": ["ssh-ed25519 AAAA"]}
NICS = (
    {"kind": "sriov", "mac": "00:50:56:80:00:02", "address": "172.29.0.11/16"},
    {"kind": "vmxnet3", "mac": "00:50:56:80:00:01", "address": "10.0.0.11/24"},
)
CUSTOMIZATION = {"hostname": "by-vcenter", "domain": "lab.test", "dns": ["10.0.0.2"], "search": ["lab.test"]}


def users(answers: firstboot.LabFirstBoot) -> list[str]:
    return [user["name"] for user in answers.userdata["users"]]


def test_a_template_without_cloud_init_ignores_guestinfo_and_has_its_own_user(tmp_path: Path) -> None:
    first_boot = firstboot.read_first_boot(
        LabVm(name="node-1", id="vm-1", extra_config=GUESTINFO, template=BAKED), tmp_path
    )
    assert (first_boot.hostname, users(first_boot)) == ("node-1", ["admin"])


def test_a_customization_names_the_guest_and_addresses_its_adapters_as_the_guest_numbers_them(tmp_path: Path) -> None:
    vm = LabVm(name="node-1", id="vm-1", extra_config={}, nics=NICS, template=BAKED, customization=CUSTOMIZATION)
    first_boot = firstboot.read_first_boot(vm, tmp_path)
    assert (first_boot.hostname, first_boot.domain, first_boot.dns, first_boot.search) == (
        "by-vcenter",
        "lab.test",
        ("10.0.0.2",),
        ("lab.test",),
    )
    assert first_boot.addresses == {0: "10.0.0.11/24", 1: "172.29.0.11/16"}


def test_what_was_customized_once_stays_so_at_later_boots(tmp_path: Path) -> None:
    vm = LabVm(name="node-1", id="vm-1", extra_config={}, nics=NICS, template=BAKED, customization=CUSTOMIZATION)
    first = firstboot.read_first_boot(vm, tmp_path)
    bare = tuple({"kind": nic["kind"]} for nic in NICS)
    assert (
        firstboot.read_first_boot(LabVm(name="node-1", id="vm-1", extra_config={}, nics=bare, template=BAKED), tmp_path)
        == first
    )


def test_cloud_init_takes_guestinfo_before_a_customization(tmp_path: Path) -> None:
    vm = LabVm(name="node-1", id="vm-1", extra_config=GUESTINFO, nics=NICS, customization=CUSTOMIZATION)
    first_boot = firstboot.read_first_boot(vm, tmp_path)
    assert (first_boot.hostname, users(first_boot), first_boot.addresses) == ("by-cloud-init", ["ubuntu"], {})
