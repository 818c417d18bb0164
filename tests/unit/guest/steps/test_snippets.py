"""The pieces of shell that probes are made of, run by a real shell."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.unit.guest.cluster import NODE_1, facts
from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.guest.steps.network import rdma
from vsphere_ml.guest.steps.system.content import Content, block, block_probe
from vsphere_ml.guest.steps.system.files import Line
from vsphere_ml.guest.steps.system.hosts import HostsFile

if TYPE_CHECKING:
    from pathlib import Path

    from tests.golden import Golden


def sh(command: str, shims: Path | None = None) -> CommandAnswer:
    path = f"{shims}:{os.environ['PATH']}" if shims else os.environ["PATH"]
    ran = subprocess.run(
        ["/bin/sh", "-c", command], env={"PATH": path, "LC_ALL": "C"}, capture_output=True, text=True, check=False
    )
    return CommandAnswer(ran.returncode, ran.stdout, ran.stderr)


def owner_of(path: Path) -> str:
    return f"{path.owner()}:{path.group()}"


def shim(folder: Path, name: str, prints: str) -> Path:
    program = folder / name
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{prints}END\n")
    program.chmod(0o755)
    return folder


@pytest.mark.parametrize("name", ["plain", "it's a $(name)", "-rf", "ü"])
def test_a_file_is_known_by_mode_owner_and_content(tmp_path: Path, name: str, golden: Golden) -> None:
    path = tmp_path / name
    path.write_text("text\n")
    path.chmod(0o640)
    right = Content(path=str(path), text="text\n", mode=0o640, owner=owner_of(path))
    assert right.drift(sh(right.probe)) is None
    golden(right.drift(sh(Content(path=f"{path}-not", text="").probe)))
    other = Content(path=str(path), text="text", mode=0o640, owner=owner_of(path))
    golden(other.drift(sh(other.probe)))
    stricter = Content(path=str(path), text="text\n", mode=0o600, owner=owner_of(path))
    golden(stricter.drift(sh(stricter.probe)))


def test_an_owner_with_a_colon_means_the_users_own_group(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("")
    ours = Content(path=str(path), text="", mode=path.stat().st_mode & 0o777, owner=f"{path.owner()}:")
    assert ours.drift(sh(ours.probe)) is None
    theirs = Content(path=str(path), text="", mode=path.stat().st_mode & 0o777, owner="nobody:")
    assert theirs.drift(sh(theirs.probe)) == f"{path} belongs to {owner_of(path)}, not nobody:"


@pytest.mark.parametrize("old", ["", "a\n", "a", "# begin x, kept by vsml\nold\n# end x\nb\n", "b\n# end x\n"])
def test_a_block_is_found_where_it_was_put(tmp_path: Path, old: str) -> None:
    path = tmp_path / "hosts"
    path.write_text(block(old, "x", "1\n2\n"))
    assert sh(block_probe(str(path), "x")).out == "1\n2\n"
    assert block(path.read_text(), "x", "1\n2\n") == path.read_text()
    assert block(path.read_text(), "x", "3\n").count("begin x") == 1


def test_a_line_is_found_as_a_whole_and_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "x"
    line = Line(path=str(path), line="-e a.*b")
    probe = line.probes(NODE_1)["line"]
    assert not sh(probe).ok
    path.write_text("-e aXb\n-e a.*b c\n")
    assert not sh(probe).ok
    path.write_text(line.placed(path.read_text()))
    assert sh(probe).ok


def test_a_guest_that_names_itself_127_0_1_1_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    probe = HostsFile().probes(NODE_1)["own"].replace("/etc/hosts", str(path))
    path.write_text("127.0.1.1 node-10 # not node-1\n10.0.0.11 node-1\n")
    assert not sh(probe).text
    path.write_text("127.0.1.1\tnode-1.example.com node-1\n")
    assert sh(probe).text == "127.0.1.1\tnode-1.example.com node-1"


LINKS = """\
1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN \\    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00
2: ens192: <BROADCAST> mtu 1500 state UP \\    link/ether 00:50:56:aa:bb:00 brd ff:ff:ff:ff:ff:ff
3: ens224@if7: <BROADCAST> mtu 9000 state UP \\    link/ether 00:50:56:aa:bb:01 brd ff:ff:ff:ff:ff:ff
4: ens224.5@ens224: <BROADCAST> mtu 9000 state UP \\    link/ether 00:50:56:aa:bb:01 brd ff:ff:ff:ff:ff:ff
"""  # noqa: E501


def test_the_roce_interface_is_found_by_its_mac(tmp_path: Path) -> None:
    shims = shim(tmp_path, "ip", LINKS)
    assert sh(rdma.interface(NODE_1), shims).text == "ens224"
    assert not sh(rdma.interface(facts(roce_mac="00:50:56:00:00:00")), shims).text


def test_without_a_mac_it_is_found_by_its_driver(tmp_path: Path) -> None:
    for nic, driver in (("ens192", "vmxnet3"), ("ens224", "mlx5_core"), ("ens225", "mlx5_core")):
        device = tmp_path / "net" / nic / "device"
        device.mkdir(parents=True)
        (device / "driver").symlink_to(f"../../../../bus/pci/drivers/{driver}")
    snippet = rdma.interface(facts(roce_mac=None)).replace("/sys/class/net", str(tmp_path / "net"))
    assert sh(snippet).text == "ens224"


def gid(device: str, index: int) -> rdma.GuestGid:
    return rdma.GuestGid(device=device, index=index, interface="ens224", address="192.168.0.11")


def test_the_gid_is_read_from_the_kernel(tmp_path: Path) -> None:
    shims = shim(tmp_path, "ip", LINKS)
    table = [("ens192", "IB/RoCE v1", "a"), ("ens224", "IB/RoCE v1", "b"), ("ens224", "RoCE v2", "c")]
    port = tmp_path / "infiniband" / "mlx5_0" / "ports" / "1"
    for folder in ("gids", "gid_attrs/ndevs", "gid_attrs/types"):
        (port / folder).mkdir(parents=True)
    for at, (nic, version, _) in enumerate(table):
        (port / "gids" / str(at)).write_text("0000:0000:0000:0000:0000:ffff:c0a8:000b\n")
        (port / "gid_attrs/ndevs" / str(at)).write_text(f"{nic}\n")
        (port / "gid_attrs/types" / str(at)).write_text(f"{version}\n")
    snippet = rdma.gids(NODE_1).replace("/sys/class/infiniband", str(tmp_path / "infiniband"))
    assert rdma.best(sh(snippet, shims), NODE_1) == gid("mlx5_0", 2)


def test_show_gids_answers_where_the_kernel_shows_no_devices(tmp_path: Path) -> None:
    shims = shim(tmp_path, "ip", LINKS)
    shim(tmp_path, "show_gids", "mlx5_2\t1\t3\t0000:0000:0000:0000:0000:ffff:c0a8:000b\t192.168.0.11 \tv2\tens224\n")
    snippet = rdma.gids(NODE_1).replace("/sys/class/infiniband", str(tmp_path / "not-there"))
    assert rdma.best(sh(snippet, shims), NODE_1) == gid("mlx5_2", 3)
