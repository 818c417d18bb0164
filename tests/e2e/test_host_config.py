"""From hosts as they come to provisioned VMs with one command, on lab hosts: by SOAP, and by SSH in their shells."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.conftest import DEADLINE_S, HELD_MS, QUAD, Lab, Shell

if TYPE_CHECKING:
    from collections.abc import Callable

    Up = Callable[..., Lab]

pytestmark = [pytest.mark.e2e, pytest.mark.lab]

AMPERE = (
    QUAD.replace('cluster = "gpu"', 'cluster = "ampere"')
    .replace("node-[01-04]", "node-[01-02]")
    .replace("nic = { model", 'nic = { kind = "sriov", model')
)
READY = AMPERE + '[host_config]\nkinds = ["graphics", "sriov"]\n'


def mig(cluster: str, profile: str) -> str:
    """Return a cluster file with one node of that MIG profile and without a fast NIC."""
    text = QUAD.replace('cluster = "gpu"', f'cluster = "{cluster}"').replace("node-[01-04]", "node-01")
    text = text.replace("A100-40C", profile).replace(
        '{ model = "ConnectX-6 Dx", port_group = "roce" }', '{ kind = "none" }'
    )
    return text + '[host_config]\nkinds = ["graphics", "mig"]\n'


def hosts(shell: Shell) -> dict[str, Any]:
    """Return the hosts as `vsml inventory` sees them, by name."""
    return {each["name"]: each for each in shell.here("inventory", "-o", "json").document["data"]["hosts"]}


def test_one_command_makes_hosts_ready_and_provisions_and_the_next_finds_nothing_to_do(shell: Shell, lab: Up) -> None:
    lab("unready-8.0u3", READY)
    plan = shell.here("plan", "-o", "json").document["data"]
    assert [each["host"] for each in plan["hosts"]] == ["esx-01.lab.test", "esx-02.lab.test"]
    assert {fact["name"] for each in plan["hosts"] for fact in each["settings"]} == {
        "default graphics type",
        "virtual functions",
    }
    assert plan["stages"][0]["title"] == "hosts"
    ended = shell.here("provision", "--yes", "-o", "json")
    assert ended.status == 0, ended.err
    assert {placement["host"] for placement in ended.document["data"]["placements"]} == {
        "esx-01.lab.test",
        "esx-02.lab.test",
    }
    seen = hosts(shell)["esx-01.lab.test"]
    assert {gpu["graphics_type"] for gpu in seen["gpus"]} == {"sharedDirect"}
    assert [nic["vfs"] for nic in seen["nics"]] == [1]
    again = shell.here("provision", "--yes", "-o", "json").document["data"]
    assert (again["applied"], again["done"]) == (False, True)


def test_not_asked_the_plan_says_what_to_type(shell: Shell, lab: Up) -> None:
    lab("unready-8.0u3", AMPERE)
    ended = shell.here("plan")
    assert ended.status == 3
    assert "esxcli graphics host set --default-type SharedPassthru" in ended.err
    assert 'esxcli system module parameters set -m nmlx5_core -p "max_vfs=1"' in ended.err
    assert "(rule host-graphics)" in ended.err
    assert hosts(shell)["esx-01.lab.test"]["gpus"][0]["graphics_type"] == "shared"


@pytest.mark.parametrize(
    ("cluster", "profile", "reboots"), [("ampere", "A100-3-20C", True), ("hopper", "H100-3-40C", False)]
)
def test_mig_mode_is_switched_on_over_ssh_with_the_reboot_that_ampere_needs(
    cluster: str,
    profile: str,
    reboots: bool,  # noqa: FBT001 - a case of it
    shell: Shell,
    lab: Up,
) -> None:
    lab("unready-8.0u3", mig(cluster, profile))
    plan = shell.here("plan", "-o", "json").document["data"]
    assert [each["reboots"] for each in plan["hosts"]] == [reboots]
    ended = shell.here("provision", "--yes", "-o", "json")
    assert ended.status == 0, ended.err
    [placement] = ended.document["data"]["placements"]
    modes = {gpu["address"]: gpu["vgpu_mode"] for gpu in hosts(shell)[placement["host"]]["gpus"]}
    assert modes[placement["gpus"][0]] == "multiInstanceGpu"
    assert len([each for each in modes.values() if each == "multiInstanceGpu"]) == 1


@pytest.mark.parametrize("moment", ["EnterMaintenanceMode_Task", "UpdatePassthruConfig", "RebootHost_Task"])
def test_a_run_that_is_killed_among_the_hosts_is_finished_by_the_next(moment: str, shell: Shell, lab: Up) -> None:
    site = lab("unready-8.0u3", READY)
    process = shell.start("provision", "--yes")
    site.begun(process, moment, 1)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=DEADLINE_S)
    ended = shell.here("provision", "--yes", "-o", "json")
    assert ended.status == 0, ended.err
    assert {placement["host"] for placement in ended.document["data"]["placements"]} == {
        "esx-01.lab.test",
        "esx-02.lab.test",
    }
    assert not any(host["maintenance"] for host in hosts(shell).values())
    assert shell.here("provision", "--yes", "-o", "json").document["data"]["applied"] is False


def test_ctrl_c_among_the_hosts_says_what_is_left(shell: Shell, lab: Up) -> None:
    site = lab("unready-8.0u3", READY)
    site.control("hosts/esx-01.lab.test", {"reboot_ms": HELD_MS})
    process = shell.start("provision", "--yes")
    site.begun(process, "RebootHost_Task", 1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 130
    assert "esx-01.lab.test" in re.findall(r"^  (\S+) ", err, re.MULTILINE)
    assert "Traceback" not in out + err
