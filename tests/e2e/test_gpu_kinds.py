"""Guests see the GPUs that their VMs have, of every kind, and `vsml verify` says so: in the lab, by stand-ins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.conftest import Shell, clean_environment
from tests.e2e.trained import SECRETS, SETTINGS, lab_with_guests
from tests.integration.guests import needed
from tests.integration.labs import cluster_file

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.e2e, pytest.mark.lab, needed]

GUEST = '[guest]\nplaybooks = ["base", "roce", "driver", "mpi"]\n[guest.settings]\n'
UVM = '[nodes.extra_config]\n"pciPassthru0.cfg.enable_uvm" = "1"'
ASKED = "nvidia-smi -L; lspci -d 10de: | grep -c A100; ls -d /sys/class/net/eth[1-9]"
# The cluster, what is asked for, what `nvidia-smi -L` and lspci show then, and how many GPUs lspci lists.
KINDS = {
    "mig": ("mig", '{ profile = "A100-3-20C", count = 2 }', "GRID A100-3-20C", "MIG 3g.20gb", 2),
    "direct": ("direct", '{ kind = "passthrough", device = "A100", count = 2 }', "NVIDIA A100-PCIE-40GB", "GPU 1:", 2),
    "dynamic": (
        "direct",
        '{ kind = "dynamic-directpath", device = "10de:20f1", label = "right" }',
        "NVIDIA A100-PCIE-40GB",
        "GPU 0:",
        1,
    ),
    "linked": ("pairs", '{ kind = "nvlink", profile = "A100-40C", count = 2 }', "GRID A100-40C", "GPU 1:", 2),
}


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    folder = tmp_path_factory.mktemp("kinds")
    made = Shell(folder, clean_environment(folder))
    for name, text in SECRETS.items():
        made.write(name, text)
        (folder / name).chmod(0o600)
    with lab_with_guests(made, "spectrum-8.0u3") as lab:
        (driver,) = (lab.password_file.parent / "guests" / "packages").glob("nvidia-linux-grid-*.deb")
        made.env["DRIVER"] = str(driver)
        yield made


def provisioned(shell: Shell, name: str, cluster: str, gpu: str, more: str = "") -> str:
    """Provision one node of this kind, guest and all; return the file's name."""
    values = {**SETTINGS, "driver_file": shell.env["DRIVER"]}
    lines = [*(f'{key} = "{value}"' for key, value in values.items()), "[guest.secrets]"]
    lines += [f'{secret} = {{ file = "{secret}" }}' for secret in SECRETS]
    tables = f"{more}\n{GUEST}" + "\n".join(lines)
    shell.write(f"{name}.toml", cluster_file(name, cluster=cluster, gpu=gpu, more=tables))
    made = shell.here("provision", f"{name}.toml", "--yes")
    assert made.status == 0, made.err
    return f"{name}.toml"


def facts(shell: Shell, file: str) -> dict[str, Any]:
    seen = shell.here("verify", file, "-o", "json")
    return {each["fact"]: each for each in seen.document["data"]["facts"]}


@pytest.mark.parametrize("name", KINDS)
def test_a_guest_sees_what_its_vm_has_and_verify_is_green(name: str, shell: Shell) -> None:
    cluster, gpu, called, shown, count = KINDS[name]
    file = provisioned(shell, name, cluster, gpu)
    seen = shell.here("run", "-f", file, "--", f"{{ {ASKED}; }} 2>/dev/null")
    assert seen.out.count(called) == count
    assert shown in seen.out
    assert seen.out.splitlines()[-2:] == [str(count), "/sys/class/net/eth1"], "a GPU is no adapter"
    found = facts(shell, file)
    wrong = {key: each["message"] for key, each in found.items() if each["severity"] != "ok"}
    assert wrong.keys() == {"ATS"}, wrong
    assert ("licence" in found) is ("driver branch" in found) is (cluster != "direct")
    assert ("NVLink" in found) is (name == "linked")
    assert shell.here("verify", file).status == 0
    assert shell.here("provision", file, "--yes", "--detailed-exitcode").status == 0


def test_unified_memory_takes_nvlink_away_and_verify_sees_it(shell: Shell) -> None:
    file = provisioned(shell, "unified", "pairs", KINDS["linked"][1], UVM)
    link = facts(shell, file)["NVLink"]
    assert link["severity"] == "error"
    assert "GPU0 to GPU1: PIX; wanted NVLink" in link["message"]
