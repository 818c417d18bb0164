"""Which RDMA ports RoCE goes by. The probe runs in a real shell over a tree like that of the kernel's sysfs."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.unit.bench.sites import port
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.probe import rdma
from vsphere_ml.core.errors import NotPossible

if TYPE_CHECKING:
    from pathlib import Path

    from tests.golden import Golden

IPV4 = "0000:0000:0000:0000:0000:ffff:0a01:000b"
LINK_LOCAL = "fe80:0000:0000:0000:0250:56ff:fe00:0001"


def device(root: Path, name: str, state: str = "4: ACTIVE", driver: str = "mlx5_core", **gids: tuple[str, str]) -> None:
    """Make a device with one port; each GID is `i3=(type, value)`."""
    (root / name / "device").mkdir(parents=True)
    (root / name / "device" / "driver").symlink_to(f"/sys/bus/pci/drivers/{driver}")
    at = root / name / "ports" / "1"
    for folder in ("gids", "gid_attrs/types", "gid_attrs/ndevs"):
        (at / folder).mkdir(parents=True)
    (at / "state").write_text(f"{state}\n")
    (at / "rate").write_text("100 Gb/sec (4X EDR)\n")
    for key, (kind, value) in gids.items():
        for folder, text in (("gids", value), ("gid_attrs/types", kind), ("gid_attrs/ndevs", "eth1")):
            (at / folder / key.removeprefix("i")).write_text(f"{text}\n")


def seen(root: Path) -> tuple[rdma.Port, ...]:
    text = rdma.PROBE.replace("/sys/class/infiniband", str(root))
    return rdma.read(subprocess.run(["sh"], input=text, capture_output=True, text=True, check=True).stdout)


def test_the_gid_is_found_by_its_type_and_address_and_not_by_a_usual_index(tmp_path: Path) -> None:
    device(
        tmp_path,
        "mlx5_0",
        i1=("RoCE v2", LINK_LOCAL),
        i2=("IB/RoCE v1", IPV4),
        i10=("RoCE v2", IPV4),
        i11=("RoCE v2", IPV4),
    )
    (found,) = seen(tmp_path)
    assert (found.name, found.line_rate_bits_per_s) == ("mlx5_0:1", 100e9)
    (rail,) = rdma.rails([found])
    assert rail.gid == rdma.PortGid(index=10, address="10.1.0.11", interface="eth1")


def test_a_port_that_is_down_or_has_no_address_is_no_way_for_roce(tmp_path: Path) -> None:
    device(tmp_path, "mlx5_0", state="1: DOWN", i3=("RoCE v2", IPV4))
    device(tmp_path, "mlx5_1", i3=("RoCE v2", LINK_LOCAL))
    assert [each.device for each in seen(tmp_path)] == ["mlx5_0", "mlx5_1"]
    assert rdma.rails(seen(tmp_path)) == ()


def test_a_pvrdma_adapter_is_known_by_its_driver_and_its_own_rate_is_not_believed(tmp_path: Path) -> None:
    device(tmp_path, "rocep11s0f1", driver="vmw_pvrdma", i0=("RoCE v2", IPV4))  # as udev may name it
    device(tmp_path, "mlx5_0", i3=("RoCE v2", IPV4))
    both = seen(tmp_path)
    assert [(each.device, each.line_rate_bits_per_s) for each in both] == [("mlx5_0", 100e9), ("rocep11s0f1", None)]
    of = {transport: rdma.ports_of_transport(both, transport) for transport in (Transport.PVRDMA, Transport.ROCE)}
    assert [[each.device for each in ports] for ports in of.values()] == [["rocep11s0f1"], ["mlx5_0"]]


def test_a_guest_without_rdma_has_no_ports(tmp_path: Path) -> None:
    assert seen(tmp_path / "none") == ()


def settings(*ports: rdma.Port) -> dict[str, str]:
    return dict(rdma.nccl_settings({"node-1": rdma.rails(ports)}, Transport.ROCE)["node-1"])


def test_nccl_gets_the_names_of_the_ports_and_the_gid_index_that_they_have_in_common() -> None:
    two = (port(), port("mlx5_1", interface="eth2"))
    assert settings(*two) == {"NCCL_IB_HCA": "=mlx5_0:1,mlx5_1:1", "NCCL_IB_GID_INDEX": "3"}
    assert settings(*rdma.ports_of_device(two, "mlx5_1"))["NCCL_IB_HCA"] == "=mlx5_1:1"


def test_indexes_that_differ_between_ports_are_left_to_nccl() -> None:
    assert settings(port(), port("mlx5_1", index=5)) == {"NCCL_IB_HCA": "=mlx5_0:1,mlx5_1:1"}


def test_a_node_without_any_is_named(golden: Golden) -> None:
    with pytest.raises(NotPossible) as refused:
        rdma.nccl_settings({"node-1": rdma.rails([port()]), "node-2": ()}, Transport.ROCE)
    assert (refused.value.code, refused.value.target) == ("bench.no-rdma", "node-2")
    golden(refused.value)
