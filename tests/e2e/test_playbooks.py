"""Every playbook that ships, by the real command on lab guests: configured once, seen to be so, nothing left to do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e import trained
from tests.e2e.trained import ALL, NAMES, Cluster
from tests.integration.guests import needed
from tests.peers import prometheus
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "import-and-export.md"
pytestmark = [pytest.mark.e2e, pytest.mark.lab, needed]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with trained.cluster(tmp_path_factory.mktemp("playbooks")) as made:
        made.playbooks(*ALL)
        done = made.configure()
        assert done.status == 0, done.err
        yield made


def facts(cluster: Cluster, *more: str) -> dict[tuple[str, str], Any]:
    seen = cluster.verify("-o", "json", *more)
    return {(each["target"], each["fact"]): each for each in seen.document["data"]["facts"]}


def test_a_second_run_does_nothing(cluster: Cluster) -> None:
    again = cluster.configure("-o", "json")
    assert again.status == 0, again.err
    assert (again.document["data"]["applied"], again.document["data"]["done"]) == (False, True)


def test_verify_is_green_and_each_fact_has_its_command(cluster: Cluster) -> None:
    seen = cluster.verify()
    assert seen.status == 0, seen.err
    assert "2 warnings" in seen.out
    found = facts(cluster)
    wrong = {key: each["message"] for key, each in found.items() if each["severity"] != "ok"}
    assert {fact for _, fact in wrong} == {"ATS"}, wrong
    assert all(each["lab"] and each["command"] for each in found.values())
    assert len(found) == 15 * len(NAMES)


def test_a_real_prometheus_scrapes_both_nodes_by_the_lines_that_are_documented(
    cluster: Cluster, tmp_path: Path
) -> None:
    exported = cluster.shell.here("export", "prometheus")
    assert exported.status == 0, exported.err
    (tmp_path / "train.json").write_text(exported.out)
    (documented,) = re.findall(r"^```yaml\n(scrape_configs:.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    config = documented.replace("/etc/prometheus/train.json", str(tmp_path / "train.json"))
    with prometheus.running(tmp_path, f"global: {{scrape_interval: 1s}}\n{config}") as server:
        until(lambda: len(server.query("up == 1")) == 2 * len(NAMES), "not all targets are up")
        up = [each["metric"] for each in server.query("up")]
        names = [each["metric"]["nodename"] for each in server.query("node_uname_info")]
        gpus = [each["metric"] for each in server.query("DCGM_FI_DEV_FB_USED")]
    assert sorted((each["job"], each["node"]) for each in up) == [(job, n) for job in ("dcgm", "node") for n in NAMES]
    assert {(each["cluster"], each["lab"]) for each in up} == {("train", "default")}
    assert len({each["esxi_host"] for each in up}) == len(NAMES)
    assert sorted(names) == sorted(each["node"] for each in gpus) == [*NAMES]


def test_ats_that_nobody_enabled_is_told_and_strictly_a_failure(cluster: Cluster) -> None:
    assert facts(cluster)["node-1", "ATS"]["severity"] == "warning"
    strict = cluster.verify("--strict")
    assert strict.status == 5
    assert "node-2: ATS: lab: ATSCtl" in strict.err


def test_a_driver_of_another_branch_than_the_hosts_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    with trained.cluster(tmp_path) as made:
        made.playbooks("base", "driver", driver_version="550.54.15")
        refused = made.configure()
        assert refused.status == 5
        assert all(version in refused.err for version in (" 550.54.15 ", "(535.183.04)", "branch 550", "branch 535")), (
            refused.err
        )
        untouched = made.shell.here("run", "--", "test ! -e /etc/security/limits.d/90-vsml.conf")
        assert untouched.status == 0, untouched.out


def test_what_needs_a_reboot_gets_one_and_the_run_goes_on_after_it(tmp_path: Path) -> None:
    with trained.cluster(tmp_path) as made:
        made.playbooks("driver")
        # The kernel's own driver holds the GPU of one node, and goes with a reboot.
        held = made.shell.here(
            "run", "--sudo", "--only", "node-1", "--", "mkdir -p /run/modules && touch /run/modules/nouveau"
        )
        assert held.status == 0, held.err
        done = made.configure("-o", "json")
        assert done.status == 0, done.err
        first, second = (guest["playbooks"][0] for guest in done.document["data"]["guests"])
        assert (first["rebooted"], second["rebooted"]) == (True, False)
        assert {each["state"] for book in (first, second) for each in book["outcomes"]} == {"changed"}
        assert done.err.count("for NVIDIA driver") == 1
        assert made.configure().did_nothing


# What somebody may do to a node, and the facts that are no longer so.
BREAKS = {
    "modprobe -r nvidia_peermem": {"GPUDirect RDMA"},
    "systemctl stop nvidia-gridd": {"licence"},
    "ip link set eth1 mtu 1500": {"RoCE interface", "RDMA device"},
    "ip address flush dev eth1": {"RoCE interface", "RoCE GID"},
    "rm /root/.ssh/vsml-train-known_hosts": {"SSH mesh"},
    "docker rm -f vsml-worker": {"GPU in the container"},
    "timedatectl set-ntp false": {"time"},
    "rm /etc/security/limits.d/90-vsml.conf": {"locked memory"},
}


@pytest.mark.parametrize("command", BREAKS)
def test_what_somebody_broke_is_seen_and_put_right(cluster: Cluster, command: str) -> None:
    assert cluster.shell.here("run", "--sudo", "--only", "node-2", "--", command).status == 0
    found = facts(cluster, "--only", "node-2")
    assert {fact for (_, fact), each in found.items() if each["severity"] == "error"} == BREAKS[command]
    assert cluster.configure().status == 0
    assert cluster.verify("--only", "node-2").status == 0


def test_without_its_driver_a_node_is_nothing(cluster: Cluster) -> None:
    assert cluster.shell.here("run", "--sudo", "--only", "node-2", "--", "modprobe -r nvidia").status == 0
    seen = cluster.verify("--only", "node-2")
    assert seen.status == 5
    assert "nvidia-smi: stand-in" not in seen.err
    assert "couldn't communicate with the NVIDIA driver" in seen.err
    assert cluster.configure().status == 0
    assert cluster.verify().status == 0  # both, after all that was done to one of them
