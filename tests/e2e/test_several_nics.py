"""Several fast NICs for each VM, from the file to the guests: each interface has its own address and MTU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.conftest import QUAD, Shell, clean_environment
from tests.e2e.trained import lab_with_guests
from tests.integration.guests import needed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.e2e, pytest.mark.lab, needed]

CLUSTER = QUAD.replace("node-[01-04]", "node-[1-2]").replace(
    'port_group = "roce" }', 'port_group = "roce", count = 2, address = "192.168.10.[11-14]/24" }'
)
STEPS = """\
about = "The RoCE interfaces alone."

[[step]]
kind = "netplan_roce"
"""


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    made = Shell(tmp_path, clean_environment(tmp_path))
    made.write("mine.toml", STEPS)
    made.write("cluster.toml", f'{CLUSTER}[guest]\nplaybooks = ["./mine.toml"]\n')
    with lab_with_guests(made):
        yield made


def test_each_interface_of_each_guest_has_the_address_and_mtu_of_the_file(shell: Shell) -> None:
    made = shell.vsml("provision", "--yes")
    assert made.status == 0, made.err
    placements = shell.vsml("status", "-o", "json").document["data"]["nodes"]
    assert [len(node["nics"]) for node in placements] == [2, 2]
    shown = {}
    for node in ("node-1", "node-2"):
        text = shell.vsml("run", "--only", node, "--", "ip -4 -o addr show to 192.168.10.0/24; ip -o link show").out
        assert text.count("mtu 9000") >= 2, text
        shown[node] = [f"192.168.10.{number}" for number in (11, 12, 13, 14) if f"192.168.10.{number}/24" in text]
    assert shown == {"node-1": ["192.168.10.11", "192.168.10.12"], "node-2": ["192.168.10.13", "192.168.10.14"]}
    again = shell.vsml("provision", "--yes", "--detailed-exitcode")
    assert again.status == 0, again.err
