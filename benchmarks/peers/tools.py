"""How each peer is started: a function installs it where it is not, and returns what prepares its command on a lab."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.bare_provision import EXTRA, TEMPLATE
from benchmarks.commands import Command
from benchmarks.provision import govc_environment
from tests.peers import clients
from vsphere_ml.lab import build

if TYPE_CHECKING:
    from benchmarks.commands import Prepare
    from vsphere_ml.lab.state import Lab

FILES = Path(__file__).parent
NUMBER = 8
GPU = "0000:3b:00.0"  # of each host of sixteen.toml
# What `bin/vhpc_toolkit` of its repository does, without the wait at the end for addresses of guests.
VHPC = """
from vhpc_toolkit import command, wait
wait.VMGetWait.wait_for_ip = lambda _vm: None
command.command()
"""
VHPC_ACCOUNT = "server: {}\nport: {}\nusername: {}\npassword: {}\n"
TEMPLATE_STEPS = """vm.markasvm -host /lab-dc/host/gpu/esx-01.lab.test {template}
vm.change -vm {template} {extra}
vm.markastemplate {template}
"""


@dataclass(frozen=True, slots=True)
class Peer:
    """A tool: what prepares its command on a lab, and how many GPUs each of its VMs has afterwards."""

    prepare: Prepare
    gpus: int = 1


def vhpc_toolkit() -> Peer:
    programs = clients.vhpc_toolkit()
    create = [str(programs / "python"), "-c", VHPC, "cluster", "--create", "--file", str(FILES / "cluster.conf")]

    def prepare(folder: Path, lab: Lab) -> Command:
        give_mmio_space_to_template(lab)
        write_account(folder / "vhpc_toolkit", lab)
        return Command(create, {"HOME": str(folder)}, folder)

    return Peer(prepare)


def give_mmio_space_to_template(lab: Lab) -> None:
    environment = os.environ | govc_environment(lab)
    extra = " ".join(f"-e {key}={value}" for key, value in EXTRA.items())
    for step in TEMPLATE_STEPS.format(template=TEMPLATE, extra=extra).splitlines():
        subprocess.run([build.govc(), *step.split()], env=environment, stdout=subprocess.DEVNULL, check=True)


def write_account(folder: Path, lab: Lab) -> None:
    """Write vCenter's name and account where vhpc-toolkit looks for them in its user's home."""
    host, _, port = lab.address.rpartition(":")
    folder.mkdir()
    (folder / "vCenter.conf").write_text(VHPC_ACCOUNT.format(host, port, lab.username, lab.password()))


def ansible() -> Peer:
    program = str(clients.ansible() / "ansible-playbook")
    inventory = ",".join(f"ansible-{at + 1:02}" for at in range(NUMBER))
    words = [program, "-i", inventory, "-f", str(NUMBER), str(FILES / "playbook.yml")]

    def prepare(folder: Path, lab: Lab) -> Command:
        own = {"HOME": str(folder), "LC_ALL": "C.UTF-8", "ANSIBLE_PIPELINING": "true"}
        return Command(words, clients.environment(lab) | own)

    return Peer(prepare)


def opentofu(gpus: int, applies: int) -> Peer:
    """Return OpenTofu that applies its file once, or once more for the GPUs."""
    program = str(clients.opentofu())
    clients.provider_mirror()
    apply = f"{program} apply -auto-approve -parallelism={NUMBER}"
    given = {"TF_VAR_gpus": json.dumps([GPU] * gpus)}

    def prepare(folder: Path, lab: Lab) -> Command:
        environment = clients.opentofu_environment(lab, folder) | given
        shutil.copy(FILES / "main.tf", folder)
        subprocess.run([program, "init"], cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=True)
        return Command(["sh", "-c", " && ".join([apply] * applies)], environment, folder)

    return Peer(prepare, gpus)
