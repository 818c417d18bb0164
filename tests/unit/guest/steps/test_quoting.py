"""Whatever stands in a name or a value, a guest's shell takes it as a word and never as a command.

Everything a step asks and tells is given to a real shell that has only its built-in commands, and a canary.
"""

from __future__ import annotations

import shlex
import subprocess
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.counted import checked, counted
from tests.unit.guest.cluster import NODE_1
from tests.unit.guest.recorder import Recorder
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.model.guest import GuestFacts, Peer, Step
from vsphere_ml.guest.facts import verify, wanted
from vsphere_ml.guest.playbooks.fields import FieldError, FileSource, WheelhouseSource
from vsphere_ml.guest.playbooks.registry import KINDS
from vsphere_ml.guest.steps.gpu.dcgm import DcgmExporter
from vsphere_ml.guest.steps.gpu.driver import NvidiaDriver
from vsphere_ml.guest.steps.gpu.gpudirect import GpuDirect
from vsphere_ml.guest.steps.gpu.licence import VgpuLicence
from vsphere_ml.guest.steps.gpu.nccl import NcclTopology
from vsphere_ml.guest.steps.mpi.containers import ContainerSshd
from vsphere_ml.guest.steps.mpi.docker import ContainerToolkit, Docker
from vsphere_ml.guest.steps.mpi.images import ImagePull, RegistryLogin
from vsphere_ml.guest.steps.mpi.mesh import SshMesh
from vsphere_ml.guest.steps.mpi.runtime import PythonRuntime
from vsphere_ml.guest.steps.network import rdma
from vsphere_ml.guest.steps.network.ofed import Ofed
from vsphere_ml.guest.steps.network.roce import NetplanRoce, RoceQos
from vsphere_ml.guest.steps.system.dataset import Dataset
from vsphere_ml.guest.steps.system.files import File, Line
from vsphere_ml.guest.steps.system.hosts import Hostfile, HostsFile
from vsphere_ml.guest.steps.system.kernel import KernelModule, Limits, Sysctl
from vsphere_ml.guest.steps.system.mirror import AptMirror
from vsphere_ml.guest.steps.system.packages import AptRepository, Packages
from vsphere_ml.guest.steps.system.services import Service, TimeSync
from vsphere_ml.guest.steps.system.shell import check_proxy
from vsphere_ml.guest.templates import render

if TYPE_CHECKING:
    from collections.abc import Callable

PIECES = ["$(: >canary)", "`: >canary`", "; : >canary;", "'", '"', "\\", " ", "&", "|", "\n", "-", "*", "$x", "a", "é"]
HOSTILE = st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map("".join)

# Every kind of step, with the text in every field that takes one.
MADE: dict[str, Callable[[str], Step]] = {
    "apt_mirror": lambda text: AptMirror(url=f"https://m/{text}", security=f"https://s/{text}"),
    "apt_repository": lambda text: AptRepository(name="x", url=text, key=FileSource(f"https://example.com/{text}")),
    "apt_repository by name": lambda text: AptRepository(name=f"x{text}", url="https://m", suite=text, trusted=True),
    "container_sshd": lambda text: ContainerSshd(image="x", devices=(f"/dev/{text}x",), volumes=(f"/{text}:/{text}",)),
    "container_sshd by image": lambda text: ContainerSshd(image=text, shared_memory=text),
    "container_toolkit": lambda _: ContainerToolkit(),
    "dataset": lambda text: Dataset(path="/tmp/x", contains=f"x{text}", archive=FileSource(f"https://m/{text}.tar")),
    "dataset by path": lambda text: Dataset(path=f"/tmp/{text}x", archive=FileSource(f"https://m/{text}.zip")),
    "dataset by NFS": lambda text: Dataset(
        path="/tmp/x", contains=f"x{text}", nfs=f"nas:/{text}x", options=f"ro{text}"
    ),
    "dcgm_exporter": lambda text: DcgmExporter(url=text, key=FileSource(f"https://example.com/{text}")),
    "docker": lambda text: Docker(package=f"docker{text}", registry_mirrors=(f"https://{text}",)),
    "file": lambda text: File(path=f"/tmp/{text}x", text="x", owner=f"root:{text}"),
    "file of text": lambda text: File(path=f"/tmp/{text}x", text=text),
    "gpudirect": lambda _: GpuDirect(),
    "hostfile": lambda text: Hostfile(path=f"/tmp/{text}x"),
    "hosts_file": lambda _: HostsFile(),
    "image_pull": lambda text: ImagePull(image=f"x{text}", archive=FileSource(f"https://m/{text}")),
    "image_pull from a file": lambda text: ImagePull(image="x", archive=FileSource(f"https://m/{text}")),
    "kernel_module": lambda text: KernelModule(name=f"x{text}"),
    "limits": lambda text: Limits(memlock=f"1{text}", hugepages=1),
    "line": lambda text: Line(path=f"/tmp/{text}x", line=f"x{text}"),
    "nccl_topology": lambda text: NcclTopology(path=f"/tmp/{text}x"),
    "netplan_roce": lambda _: NetplanRoce(),
    "nvidia_driver": lambda text: NvidiaDriver(source=FileSource(f"https://m/{text}-525.105.17.run"), any_branch=True),
    "nvidia_driver by deb": lambda text: NvidiaDriver(
        source=FileSource(f"https://m/{text}.deb"), version="525.105.17", any_branch=True
    ),
    "ofed": lambda text: Ofed(source=FileSource(f"https://example.com/{text}.tgz")),
    "ofed by package": lambda text: Ofed(package=f"doca{text}", version=text),
    "packages": lambda text: Packages(names=(f"curl{text}",), only_from=f"x{text}"),
    "python_runtime": lambda text: PythonRuntime(path=f"/tmp/{text}x", python=text, packages=("a==1",)),
    "python_runtime by index": lambda text: PythonRuntime(packages=("a==1",), index=f"https://{text}"),
    "python_runtime by wheels": lambda text: PythonRuntime(
        packages=("a==1",), wheelhouse=WheelhouseSource(f"https://example.com/{text}.tar")
    ),
    "registry_login": lambda text: RegistryLogin(user=f"u{text}"),
    "registry_login by name": lambda text: RegistryLogin(registry=f"r{text}"),
    "roce_qos": lambda _: RoceQos(),
    "service": lambda text: Service(name=f"x{text}"),
    "ssh_mesh": lambda _: SshMesh(),
    "ssh_mesh of a user": lambda text: SshMesh(user=f"u{text}"),
    "sysctl": lambda text: Sysctl(name="x", settings={f"net.{text}": f"1{text}"}),
    "sysctl of a value": lambda text: Sysctl(name="x", settings={"net.x": f"1{text}"}),
    "time_sync": lambda text: TimeSync(servers=(text,)),
    "vgpu_licence": lambda text: VgpuLicence(server=f"x{text}"),
    "vgpu_licence by token": lambda _: VgpuLicence(),
}


def test_every_kind_is_tried() -> None:
    assert {each.partition(" ")[0] for each in MADE} == set(KINDS)


def hostile_facts(text: str) -> GuestFacts:
    peer = Peer(name=text, address=text, roce_address=text)
    values = {**NODE_1.values, "proxy": "http://proxy.example.com:3128", "mesh_user": text, "ssh_port": text}
    return replace(NODE_1, name=text, cluster=text, peers=(peer,), roce_mac=text, values=values)


def hostile_guest(text: str) -> wanted.ExpectedSteps:
    """Return a guest with the names that a playbook lets through at their worst."""
    with suppress(FieldError):
        return replace(wanted.wanted_by_playbooks(()), mesh=SshMesh(user=text), container=ContainerSshd(image="x"))
    return replace(wanted.wanted_by_playbooks(()), container=ContainerSshd(image="x"))


def everything(step: Step, facts: GuestFacts) -> list[str]:
    """Return every command a step has for a guest."""
    shell = Recorder()
    step.apply(shell, facts)
    texts = [command for command in shell.told if not command.startswith(("write ", "put "))]
    texts += [text for text, _, _ in shell.files.values() if text.startswith("#!")]
    return [*step.probes(facts).values(), *(each for asked in shell.asked for each in asked.values()), *texts]


def harmless(commands: list[str]) -> None:
    with TemporaryDirectory() as folder:
        script = 'for each; do (eval "$each"); done'
        ran = subprocess.run(
            ["/bin/sh", "-c", script, "sh", *commands],
            cwd=folder,
            env={"PATH": "/nonexistent"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        assert not list(Path(folder).iterdir()), f"a value was run as a command: {commands}"
        assert b"yntax error" not in ran.stderr, f"a value broke a command: {commands}"
        assert b"nterminated" not in ran.stderr, f"a value broke a command: {commands}"


def test_the_canary_sings() -> None:
    with pytest.raises(AssertionError, match="was run"):
        harmless(["cat $(: >canary)"])
    with pytest.raises(AssertionError, match="broke"):
        harmless(["cat 'x"])


@pytest.mark.parametrize("kind", MADE)
@settings(max_examples=40, deadline=None)
@given(text=HOSTILE)
def test_no_value_of_a_field_is_run(kind: str, text: str) -> None:
    try:
        step = MADE[kind](text)
    except FieldError:
        return  # refused when the playbook is read, which is as good
    harmless(everything(step, NODE_1))


@pytest.mark.parametrize("kind", MADE)
@settings(max_examples=15, deadline=None)
@given(text=HOSTILE)
def test_no_name_of_a_node_or_a_cluster_is_run(kind: str, text: str) -> None:
    facts = hostile_facts(text)
    harmless(everything(MADE[kind]("1"), facts))


@given(text=HOSTILE)
def test_a_proxy_that_could_be_a_command_is_refused(text: str) -> None:
    for values in ({"proxy": f"http://{text}"}, {"proxy": "http://p", "no_proxy": text}):
        with suppress(ConfigError):
            check_proxy(values)
            assert not set("".join(values.values())) & set("$`;'\"\\&|\n")


@settings(max_examples=40, deadline=None)
@given(text=HOSTILE)
def test_no_name_is_run_by_verify(text: str) -> None:
    shell = Recorder(name=text)
    harmless([each.command for each in verify.verify(shell, hostile_facts(text), hostile_guest(text))])


@counted
@given(text=HOSTILE)
def test_a_path_reaches_the_guest_as_it_is(text: str) -> None:
    if "\n" not in text:
        checked()
        probe = File(path=f"/tmp/{text}x", text="x").probes(NODE_1)["file"]
        assert shlex.split(probe).count(f"/tmp/{text}x") == 2


@given(text=HOSTILE)
def test_a_hostile_mac_or_address_stays_one_value_of_netplans_file(text: str) -> None:
    def lines(address: str) -> list[str]:
        values = {"name": "vsml-roce", "mac": address, "address": address, "mtu": 9000}
        rendered = render.render(render.shipped_template("netplan-roce.yaml"), values)
        return [line.partition('"')[0] for line in rendered.splitlines()]

    assert lines(text) == lines("x")


@given(text=HOSTILE)
def test_the_interface_is_looked_for_by_the_mac_alone(text: str) -> None:
    assert f"mac={shlex.quote(text.lower())} " in rdma.interface(hostile_facts(text))
