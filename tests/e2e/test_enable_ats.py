"""`vsml enable-ats` as a person types it, on lab hosts: over SOAP, and over SSH in their shells."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING, Any

import pexpect
import pytest

from tests.e2e.conftest import DEADLINE_S, QUAD, SEED, Ended, Lab, Shell

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    Up = Callable[..., Lab]

pytestmark = [pytest.mark.e2e, pytest.mark.lab]
GO = ("enable-ats", "--yes", "--allow-downtime")


def existing(shell: Shell, lab: Up, topology: str = "seed-7.0u2", text: str = SEED) -> Lab:
    """Return a lab on which the cluster's nodes run."""
    site = lab(topology, text)
    shell.provisioned()
    with_tools(site)
    return site


def with_tools(site: Lab) -> None:
    """Have VMware Tools run in the nodes: without guests nothing is there that could be asked to shut down."""
    for name in site.vms:
        if name.startswith("node-"):
            site.control(f"vms/{name}", {"guest_ip": "10.0.0.1"})


def on_hosts(hosts: str, count: int) -> str:
    """Return a cluster file with one node on each of these hosts."""
    return QUAD.replace("node-[01-04]", f"node-[01-{count:02}]") + f"hosts = [{hosts}]\n"


def states(ended: Ended, host: int = 0) -> dict[str, str]:
    """Return each setting's state on a host, by name and port."""
    settings = ended.document["data"]["hosts"][host]["settings"]
    return {f"{each['name']} {each['on']}".strip(): each["state"] for each in settings}


def vms_run(site: Lab) -> set[str]:
    return {name for name, vm in site.vms.items() if vm["powered_on"] and name.startswith("node-")}


def test_from_a_factory_host_to_one_that_is_enabled_and_back(shell: Shell, lab: Up) -> None:
    site = existing(shell, lab)
    before = shell.here("enable-ats", "--check", "-o", "json")
    assert before.status == 7
    assert states(before)["atsSupport"] == states(before)["ATS_ENABLED 0000:3c:00.0"] == "not configured"
    assert before.document["data"]["lab"] is True

    refused = shell.here("enable-ats", "--yes")
    assert refused.status == 3
    assert "node-01, node-02" in refused.err
    assert "--allow-downtime" in refused.err

    ended = shell.here(*GO, "-o", "json")
    assert ended.status == 0, ended.err
    host = ended.document["data"]["hosts"][0]
    assert set(states(ended).values()) == {"effective"}
    assert host["outcome"]["reboot_seconds"] > 0
    assert host["former"]["kernel"] == "FALSE"
    assert vms_run(site) == {"node-01", "node-02"}

    again = shell.here(*GO)
    assert again.did_nothing
    assert "1 host" in again.out
    assert shell.here("enable-ats", "--check").status == 0

    with_tools(site)
    back = shell.here(*GO, "--revert")
    assert back.status == 0, back.err
    after = shell.here("enable-ats", "--check", "-o", "json")
    assert states(after) == states(before)
    assert vms_run(site) == {"node-01", "node-02"}


def test_nothing_is_changed_by_a_look(shell: Shell, lab: Up) -> None:
    site = existing(shell, lab)
    for option in ("--check", "--dry-run"):
        shown = shell.here("enable-ats", option)
        assert "maintenance mode" in shown.out
        assert "lab: " in shown.out
    calls = site.control("calls")
    writing = ("EnterMaintenanceMode_Task", "RebootHost_Task", "ShutdownGuest", "PowerOffVM_Task")
    assert [name for name in writing if calls.get(name)] == []


def test_a_run_without_a_terminal_wants_yes(shell: Shell, lab: Up) -> None:
    existing(shell, lab)
    assert shell.here("enable-ats", "--allow-downtime").status == 2


FAULTS = {
    "no-mft": (3, "firmware tools (MFT) are not installed"),
    "no-ats": (3, "lists no ATS_ENABLED"),
    "ssh-refused": (3, "cannot be reached over SSH"),
    "firmware-refuses": (4, "refuses ATS_ENABLED=True: -E- Failed to set configuration"),
    "firmware-forgets": (4, "not everything is in effect"),
    "kernel-ignores": (4, "says FALSE when asked again"),
    "kernel-forgets": (4, "atsSupport: configured TRUE, in effect FALSE"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_goes_wrong_is_told_and_the_vms_run_again(fault: str, shell: Shell, lab: Up) -> None:
    site = existing(shell, lab)
    site.control("hosts/esx-01.lab.test", {"faults": [fault]})
    status, words = FAULTS[fault]
    ended = shell.here(*GO)
    assert ended.status == status, ended.err
    assert words in ended.out + ended.err
    assert "Traceback" not in ended.err
    assert vms_run(site) == {"node-01", "node-02"}
    assert not in_maintenance(site)
    site.control("hosts/esx-01.lab.test", {"faults": []})
    with_tools(site)
    mended = shell.here(*GO)
    assert mended.status == 0, mended.err


def in_maintenance(site: Lab) -> bool:
    return any(host["maintenance"] for host in site.control("hosts"))


def test_each_version_of_a_mixed_cluster_is_taken_as_it_is(shell: Shell, lab: Up) -> None:
    names = ("esx-u2.lab.test", "esx-u3.lab.test", "esx-8.lab.test", "esx-amd.lab.test")
    hosts = ", ".join(f'"{name}"' for name in names)
    existing(shell, lab, "mixed-ats", on_hosts(hosts, len(names)))
    refused = shell.here("enable-ats", "--yes", "--allow-downtime", "--host", "esx-u*")
    assert refused.status == 3
    assert "7.0 U2" in refused.err
    ended = shell.here(*GO, "-o", "json")
    assert ended.status == 0, ended.err
    answers = {host["host"]: host for host in ended.document["data"]["hosts"]}
    assert set(answers) == set(names)
    assert all(host["enabled"] for host in answers.values())
    assert "kernel" in answers["esx-u2.lab.test"]["former"]  # the only one that ships it off
    assert "kernel" not in answers["esx-8.lab.test"]["former"]
    assert "AMD" in answers["esx-amd.lab.test"]["warnings"][0]


def test_of_sixteen_hosts_one_dies_and_those_after_it_are_left_alone(shell: Shell, lab: Up) -> None:
    site = existing(shell, lab, "sixteen-7.0u2", on_hosts('"esx-[01-16].lab.test"', 16))
    for number in range(1, 17):
        site.control(f"hosts/esx-{number:02}.lab.test", {"reboot_ms": 100, "notice_ms": 0})
    ended = shell.here(*GO, "--reboot-deadline", "30", "-o", "json")
    assert ended.status == 4
    (error,) = ended.document["errors"]
    assert (error["code"], error["target"]) == ("ats.host-failed", "esx-11.lab.test")
    assert {"esx-11.lab.test", "node-11"} <= {line.split()[0] for line in error["details"]}
    outcomes = [host["outcome"] for host in ended.document["data"]["hosts"]]
    assert [each["begun"] for each in outcomes] == [True] * 11 + [False] * 5
    site.control("hosts/esx-11.lab.test", {"faults": [], "connection": "connected"})
    with_tools(site)
    mended = shell.here(*GO)
    assert mended.status == 0, mended.err
    assert len(vms_run(site)) == 16


STEPS = ["ShutdownGuest", "EnterMaintenanceMode_Task", "ExecuteSoap", "RebootHost_Task", "PowerOnVM_Task"]


def begun(site: Lab, shell: Shell, method: str) -> subprocess.Popen[str]:
    """Start a run and come back once the lab has begun this call of it."""
    before = site.control("calls").get(method, 0)
    process = shell.start(*GO)
    more = 2 if method == "ExecuteSoap" else 0  # those that only read
    site.begun(process, method, before + more + 1)
    return process


@pytest.mark.parametrize("method", STEPS)
def test_a_killed_run_is_finished_by_the_next(method: str, shell: Shell, lab: Up) -> None:
    site = existing(shell, lab)
    process = begun(site, shell, method)
    process.kill()
    process.communicate(timeout=DEADLINE_S)
    with_tools(site)
    mended = shell.here(*GO)
    assert mended.status == 0, mended.err
    assert shell.here("enable-ats", "--check").status == 0
    assert vms_run(site) == {"node-01", "node-02"}
    assert not in_maintenance(site)
    resumed: list[Any] = [vm for vm in site.vms.values() if vm.get("resume")]
    assert resumed == []


def test_on_a_terminal_it_asks_and_shows_how_long_the_reboot_takes(shell: Shell, lab: Up) -> None:
    site = existing(shell, lab)
    site.control("hosts/esx-01.lab.test", {"reboot_ms": 5000})
    child = shell.terminal("enable-ats", "--allow-downtime")
    child.expect_exact("Continue? [y/N]")
    child.sendline("y")
    child.expect_exact("rebooting")
    child.expect(r"\d s of 1800 s at most")
    child.expect(r"reboot: .*done.* in \d+\.\d s")
    child.expect_exact("ATS is in effect on 1 host of train")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


def test_ctrl_c_says_what_is_left(shell: Shell, lab: Up) -> None:
    site = existing(shell, lab)
    site.control("hosts/esx-01.lab.test", {"reboot_ms": 10_000})
    process = begun(site, shell, "RebootHost_Task")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 130
    assert {"esx-01.lab.test", "node-01"} <= set(re.findall(r"^  (\S+) ", err, re.MULTILINE))
    assert "Traceback" not in out + err
    mended = shell.here(*GO)
    assert mended.status == 0, mended.err
    assert vms_run(site) == {"node-01", "node-02"}
