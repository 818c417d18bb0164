"""A cluster on lab guests, with every playbook that ships, driven by the real command."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from pyVmomi import vim

from tests.e2e.conftest import QUAD, Shell, clean_environment
from tests.integration import labs
from tests.integration.guests import needed, published
from tests.waiting import until
from vsphere_ml.lab import runtime, server, state

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.conftest import Ended
    from vsphere_ml.lab.state import Lab

NAMES = ("node-1", "node-2")
LAN = "1gbit"  # of guests' links: without a rate iperf3 takes all the CPU time that it can get
ALL = ("base", "roce", "driver", "container", "runtime", "mpi", "monitoring")
# What must never be seen anywhere but in the file that holds it.
SECRETS = {"licence_token": "hunter2-token-hunter2", "registry_key": "hunter2-registry-hunter2"}
SETTINGS = {
    "doca_url": "file:/opt/vsml-lab",
    "doca_trusted": "true",
    "cuda_url": "file:/opt/vsml-lab",
    "cuda_suite": "./",
    "cuda_trusted": "true",
    "toolkit_url": "file:/opt/vsml-lab",
    "toolkit_suite": "./",
    "toolkit_key": "",
    "toolkit_trusted": "true",
    "image": "nvcr.io/nvidia/tensorflow:23.05-tf2-py3",
}


def on_guests() -> list[pytest.MarkDecorator]:
    """Return the marks of tests that launch Horovod on lab guests."""
    missing = runtime.missing_need()
    return [
        pytest.mark.e2e,
        pytest.mark.lab,
        needed,
        pytest.mark.skipif(missing is not None, reason=f"no Horovod for lab guests: {missing}"),
        pytest.mark.timeout(3600),  # the runtime is built the first time
    ]


@dataclass(frozen=True)
class Cluster:
    """Running VMs whose guests have had their first boot, and nothing else yet."""

    shell: Shell
    lab: Lab

    @property
    def home(self) -> Path:
        """Where the lab keeps its guests."""
        return self.lab.password_file.parent / "guests"

    def playbooks(self, *names: str, **settings: str) -> None:
        """Let the cluster file name these playbooks."""
        values = {**SETTINGS, **self._files(), **settings}
        lines = [*(f'{key} = "{value}"' for key, value in values.items()), "[guest.secrets]"]
        lines += [f'{name} = {{ file = "{name}" }}' for name in SECRETS]
        listed = ", ".join(f'"{name}"' for name in names)
        nodes = QUAD.replace("node-[01-04]", "node-[1-2]")
        guest = f"[guest]\nplaybooks = [{listed}]\n[guest.settings]\n"
        self.shell.write("cluster.toml", nodes + guest + "\n".join(lines) + "\n")

    def shape(self, rate: str = LAN, *more: str) -> None:
        """Give guests' links a rate: all, or those named."""
        ended = self.shell.here("lab", "shape", "--rate", rate, *more)
        assert ended.status == 0, ended.err

    def configure(self, *more: str) -> Ended:
        return self.shell.here("configure", "--yes", *more)

    def verify(self, *more: str) -> Ended:
        return self.shell.here("verify", *more)

    def moid(self, name: str) -> str:
        """Return the VM's id, by which the lab knows its guest."""
        seen = self.shell.here("inventory", "--lab", "default", "-o", "json")
        return str(next(vm["ref"] for vm in seen.document["data"]["vms"] if vm["name"] == name))

    def _files(self) -> dict[str, str]:
        (driver,) = (self.home / "packages").glob("nvidia-linux-grid-*.deb")
        return {"driver_file": f"[nfs-images] drivers/{driver.name}", "wheelhouse": str(self.home / "wheelhouse.tar")}


def runs(ended: Ended) -> list[dict[str, Any]]:
    """Return the launches that `vsml bench -o json` tells."""
    assert ended.status == 0, ended.err
    found: list[dict[str, Any]] = ended.document["data"]["runs"]
    return found


def document(out: str) -> Any:
    """Return the JSON document a command wrote."""
    return json.loads(out)


def with_image(folder: Path, image: str) -> str:
    """Write the lab's default site with this image for the guests of its template, and return the file."""
    text, template = (state.TOPOLOGIES / "quad-8.0u3.toml").read_text(), 'name = "ubuntu-22.04-gpu"\n'
    assert text.count(template) == 1
    (folder / f"{image}.toml").write_text(text.replace(template, f'{template}image = "{image}"\n'))
    return str(folder / f"{image}.toml")


@contextmanager
def pytorch_cluster(folder: Path, image: str) -> Iterator[Cluster]:
    """Run a lab with two nodes whose system Python has PyTorch, of this image, on links of a rate."""
    with cluster(folder, with_image(folder, image)) as made:
        made.playbooks("base", "mpi", runtime_path="/usr", mesh_user="root")
        done = made.configure()
        assert done.status == 0, done.err
        made.shape()
        yield made


@contextmanager
def cluster(folder: Path, topology: str = server.DEFAULT_TOPOLOGY) -> Iterator[Cluster]:
    """Run a lab with two nodes in it."""
    shell = Shell(folder, clean_environment(folder))
    for name, text in SECRETS.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o600)
    with lab_with_guests(shell, topology) as lab:
        made = Cluster(shell, lab)
        made.playbooks("base")
        shell.provisioned("--skip-guests")
        await_first_boot(lab)
        yield made


def await_first_boot(lab: Lab) -> None:
    """Return once the nodes' guests tell vCenter their addresses and host keys."""
    session = labs.sign_in(lab)
    try:
        root, kinds = session.content.rootFolder, [vim.VirtualMachine]
        seen = session.content.viewManager.CreateContainerView(root, kinds, recursive=True).view
        nodes = [vm for vm in seen if vm.name in NAMES]
        until(lambda: all(vm.guest.ipAddress and published(vm) for vm in nodes), "a guest tells no address")
    finally:
        session.close()


@contextmanager
def lab_with_guests(shell: Shell, topology: str = server.DEFAULT_TOPOLOGY) -> Iterator[Lab]:
    """Run the lab that the shell's commands find."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VSML_STATE_DIR", shell.env["VSML_STATE_DIR"])
        lab, _ = server.start_lab(topology, guests=True)
        try:
            yield lab
        finally:
            server.stop_lab()
