from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.fakes import pictures
from vsphere_ml.cli.terminal import show
from vsphere_ml.cli.views.site import inventory as view
from vsphere_ml.cli.views.site import tree
from vsphere_ml.core.codec import encode
from vsphere_ml.core.model.inventory import VmRef

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import RenderableType

    from tests.golden import Golden
    from tests.unit.cli.conftest import Shown

SWITCH_OF_ESX_02 = """\
├── NUMA node 0  28 cores, 512 GiB
│   └── root port 0000:36:00.0
│       └── PCIe switch 0000:37:00.0
│           ├── GPU 0000:3b:00.0 NVIDIA A100-PCIE-40GB: etl-7 (grid_a100-40c)
│           ├── GPU 0000:3c:00.0 NVIDIA A100-PCIE-40GB: free
│           └── NIC 0000:3d:00.0 MT2892 Family [ConnectX-6 Dx] vmnic4, SR-IOV 0 of 8 used: free
"""


def written(what: RenderableType, shown: Callable[..., Shown]) -> str:
    made = shown()
    show(made.terminal.out, what)
    return made.out.getvalue()


def test_the_tree_draws_what_shares_a_switch_and_who_uses_it(shown: Callable[..., Shown]) -> None:
    assert SWITCH_OF_ESX_02 in written(tree.text(pictures.quad_8u3()), shown)


def test_a_device_whose_numa_node_is_not_told_is_still_drawn(shown: Callable[..., Shown], golden: Golden) -> None:
    site = pictures.quad_8u3()
    hosts = tuple(replace(host, numa=()) for host in site.hosts)
    drawn = written(tree.text(replace(site, hosts=hosts)), shown)
    golden(drawn)
    assert drawn.count("GPU 0000:") == 4 * len(hosts)


def test_the_tables_say_what_is_free_and_end_no_line_in_blanks(shown: Callable[..., Shown], golden: Golden) -> None:
    text = written(view.text(pictures.quad_8u3()), shown)
    lines = text.splitlines()
    golden(text)
    assert any(line.split()[:2] == ["esx-02.lab.test", "0000:3b:00.0"] and "etl-7" in line for line in lines)
    assert not any(line.endswith(" ") for line in lines)


def test_who_holds_a_nic_is_named_and_unknown_holders_keep_their_reference() -> None:
    nic = pictures.quad_8u3().hosts[0].nics[0]
    names = {VmRef("vm-1"): "etl-7"}
    assert view.nic_users(replace(nic, held_by=VmRef("vm-1")), names) == "etl-7 (all of it)"
    assert view.nic_users(replace(nic, vf_holders=(VmRef("vm-1"), VmRef("vm-9"))), names) == "etl-7, vm-9"


def test_the_data_of_an_inventory_is_json_with_memory_in_bytes() -> None:
    found = json.loads(json.dumps(encode(pictures.seed_7u2())))
    assert found["hosts"][0]["memory"] == 768 << 30
    assert {gpu["address"] for gpu in found["hosts"][0]["gpus"]} == {"0000:3b:00.0", "0000:af:00.0"}
