"""govc, govmomi's command line, works against the lab as against a vCenter."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.peers.clients import environment

if TYPE_CHECKING:
    from vsphere_ml.lab.state import Lab

pytestmark = [pytest.mark.peers, pytest.mark.lab]

APPLIANCE = Path(__file__).parent / "appliance.ovf"
HOST = "/lab-dc/host/gpu/esx-01.lab.test"


class Govc:
    def __init__(self, program: Path, lab: Lab, home: Path) -> None:
        self._program = program
        self._env = environment(lab) | {"HOME": str(home), "GOVC_DATACENTER": "lab-dc"}

    def run(self, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._program, *arguments],
            env=self._env | env,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def __call__(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self(arguments[0], "-json", *arguments[1:]))


@pytest.fixture
def run(govc: Path, lab: Lab, tmp_path: Path) -> Govc:
    return Govc(govc, lab, tmp_path)


def test_it_signs_in_over_verified_tls_and_reads_the_version(run: Govc) -> None:
    assert run.json("about")["about"]["apiVersion"] == "8.0.3.0"


def test_a_wrong_password_is_refused(run: Govc) -> None:
    done = run.run("about", GOVC_PASSWORD="wrong")
    assert done.returncode != 0
    assert "incorrect user name or password" in done.stderr


def test_without_the_ca_the_certificate_is_refused(run: Govc) -> None:
    done = run.run("about", GOVC_TLS_CA_CERTS="", SSL_CERT_FILE="/dev/null")
    assert done.returncode != 0
    assert "certificate" in done.stderr


def test_it_finds_the_four_hosts(run: Govc) -> None:
    assert len(run("find", "/lab-dc/host", "-type", "h").splitlines()) == 4


def test_it_reads_a_hosts_gpus_and_profiles(run: Govc) -> None:
    assert "A100" in run("gpu.host.info", "-host", HOST)
    assert "grid_a100-40c" in run("gpu.host.profile.ls", "-host", HOST)


def test_it_clones_equips_powers_and_removes_a_vm(run: Govc) -> None:
    run("vm.clone", "-vm", "ubuntu-22.04-gpu", "-on=false", "-host", HOST, "-ds", "vsan", "govc-1")
    run("vm.upgrade", "-vm", "govc-1", "-version", "20")
    run("vm.change", "-vm", "govc-1", "-m", "65536", "-memory-pin=true")
    run("vm.change", "-vm", "govc-1", "-e", "pciPassthru.use64bitMMIO=TRUE", "-e", "pciPassthru.64bitMMIOSizeGB=128")
    run("gpu.vm.add", "-vm", "govc-1", "-profile", "grid_a100-40c")
    run("vm.power", "-on", "govc-1")
    assert run.json("vm.info", "govc-1")["virtualMachines"][0]["runtime"]["powerState"] == "poweredOn"
    run("vm.power", "-off", "govc-1")
    run("vm.destroy", "govc-1")
    assert run("find", "/lab-dc/vm", "-name", "govc-1") == ""


def test_an_unknown_profile_is_refused_with_a_sentence(run: Govc) -> None:
    run("vm.clone", "-vm", "ubuntu-22.04-gpu", "-on=false", "-host", HOST, "-ds", "vsan", "govc-2")
    done = run.run("gpu.vm.add", "-vm", "govc-2", "-profile", "grid_a100-41c")
    assert done.returncode != 0
    assert "types." not in done.stderr, "a Go type instead of vCenter's sentence"
    run("vm.destroy", "govc-2")


def test_it_reads_and_sets_a_kernel_setting_with_esxcli(run: Govc) -> None:
    listed = run("host.esxcli", "-host", HOST, "--", "system", "settings", "kernel", "list", "-o", "atsSupport")
    assert "atsSupport" in listed


def test_it_signs_in_to_rest_and_keeps_its_session(run: Govc) -> None:
    run("session.login", "-r")
    assert run.json("session.ls", "-r")


def test_rest_refuses_a_wrong_password(run: Govc) -> None:
    done = run.run("tags.ls", GOVC_PASSWORD="wrong")
    assert done.returncode != 0
    assert "401" in done.stderr


def test_it_tags_a_vm_and_finds_it_again(run: Govc) -> None:
    run("tags.category.create", "-t", "VirtualMachine", "team")
    run("tags.create", "-c", "team", "vision")
    run("tags.attach", "vision", "/lab-dc/vm/etl-7")
    assert [tag["name"] for tag in run.json("tags.ls", "-c", "team")] == ["vision"]
    (attached,) = run.json("tags.attached.ls", "vision")
    assert attached == run("find", "-i", "/lab-dc/vm", "-name", "etl-7").strip()


def test_it_lists_content_libraries(run: Govc) -> None:
    assert run.json("library.ls") in (None, [])


def test_it_makes_a_library_puts_a_template_in_and_deploys_a_vm_of_it(run: Govc) -> None:
    run("library.create", "-ds", "nfs-images", "images")
    assert [each["name"] for each in run.json("library.ls")] == ["images"]
    run("library.clone", "-vm", "ubuntu-22.04-gpu", "-pool", "gpu/Resources", "images", "ubuntu-lib")
    (item,) = run.json("library.info", "/images/ubuntu-lib")
    assert item["type"] == "vm-template"
    run("library.deploy", "-pool", "gpu/Resources", "-host", HOST, "/images/ubuntu-lib", "govc-3")
    assert run.json("vm.info", "govc-3")["virtualMachines"][0]["config"]["firmware"] == "efi"


def test_it_imports_an_ovf_template_and_deploys_one_from_a_library(run: Govc) -> None:
    run("import.ovf", "-ds", "vsan", "-pool", "gpu/Resources", "-net", "vm-mgmt", "-name", "govc-4", str(APPLIANCE))
    run("library.create", "-ds", "nfs-images", "appliances")
    run("library.import", "appliances", str(APPLIANCE))
    run("library.deploy", "-ds", "vsan", "-pool", "gpu/Resources", "-host", HOST, "/appliances/appliance", "govc-5")
    for name in ("govc-4", "govc-5"):
        (made,) = run.json("vm.info", name)["virtualMachines"]
        assert (made["config"]["hardware"]["numCPU"], made["config"]["hardware"]["memoryMB"]) == (2, 2048)
        run("vm.destroy", name)


def test_it_lists_the_storage_policies(run: Govc) -> None:
    named = {policy["name"] for policy in run.json("storage.policy.ls")["profile"]}
    assert {"vSAN Default Storage Policy", "gold", "silver"} <= named


def test_it_tells_which_datastores_satisfy_a_storage_policy(run: Govc) -> None:
    (policy,) = run.json("storage.policy.info", "-s", "gold")["policies"]
    assert policy["compatibleDatastores"] == ["vsan"]


@pytest.mark.parametrize("base", ["ComputeResource", "ManagedEntity"])
def test_it_reads_a_cluster_as_a_base_class(run: Govc, base: str) -> None:
    own = run("find", "-i", "/lab-dc/host", "-type", "c").strip()
    assert own.startswith("ClusterComputeResource:")
    assert run("object.collect", "-s", f"{base}:{own.partition(':')[2]}", "name") == "gpu\n"
