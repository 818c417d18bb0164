"""How each peer is started: a function installs it where it is not, and returns what prepares its command on a lab."""

from __future__ import annotations

import os
import shutil
import subprocess
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


def vhpc_toolkit() -> Prepare:
    programs = clients.vhpc_toolkit()
    create = [str(programs / "python"), "-c", VHPC, "cluster", "--create", "--file", str(FILES / "cluster.conf")]

    def prepare(folder: Path, lab: Lab) -> Command:
        give_mmio_space_to_template(lab)
        write_account(folder / "vhpc_toolkit", lab)
        return Command(create, {"HOME": str(folder)}, folder)

    return prepare


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


def ansible() -> Prepare:
    program = str(clients.ansible() / "ansible-playbook")
    inventory = ",".join(f"ansible-{at + 1:02}" for at in range(NUMBER))
    words = [program, "-i", inventory, "-f", str(NUMBER), str(FILES / "playbook.yml")]

    def prepare(folder: Path, lab: Lab) -> Command:
        own = {"HOME": str(folder), "LC_ALL": "C.UTF-8", "ANSIBLE_PIPELINING": "true"}
        return Command(words, clients.environment(lab) | own)

    return prepare


def opentofu() -> Prepare:
    program = str(clients.opentofu())
    clients.provider_mirror()

    def prepare(folder: Path, lab: Lab) -> Command:
        environment = clients.opentofu_environment(lab, folder)
        shutil.copy(FILES / "main.tf", folder)
        subprocess.run([program, "init"], cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=True)
        return Command([program, "apply", "-auto-approve", f"-parallelism={NUMBER}"], environment, folder)

    return prepare
