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

from tests.unit.guest.cluster import NODE_1
from tests.unit.guest.recorder import Recorder
from vsphere_ml.core.guest import GuestFacts, Peer, Step
from vsphere_ml.guest import render, verify, wanted
from vsphere_ml.guest.fields import Source, Wrong
from vsphere_ml.guest.steps import rdma
from vsphere_ml.guest.steps.containers import ContainerSshd
from vsphere_ml.guest.steps.files import File, Line
from vsphere_ml.guest.steps.hosts import Hostfile, HostsFile
from vsphere_ml.guest.steps.images import RegistryLogin
from vsphere_ml.guest.steps.mesh import SshMesh
from vsphere_ml.guest.steps.ofed import Ofed
from vsphere_ml.guest.steps.packages import AptRepository, Packages
from vsphere_ml.guest.steps.roce import NetplanRoce
from vsphere_ml.guest.steps.runtime import PythonRuntime

if TYPE_CHECKING:
    from collections.abc import Callable

PIECES = ["$(: >canary)", "`: >canary`", "; : >canary;", "'", '"', "\\", " ", "&", "|", "\n", "-", "*", "$x", "a", "é"]
HOSTILE = st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map("".join)

MADE: dict[str, Callable[[str], Step]] = {
    "file": lambda text: File(path=f"/tmp/{text}x", text="x"),
    "line": lambda text: Line(path=f"/tmp/{text}x", line=f"x{text}"),
    "runtime": lambda text: PythonRuntime(path=f"/tmp/{text}x", python=text, packages=("a==1",)),
    "index": lambda text: PythonRuntime(packages=("a==1",), index=f"https://{text}"),
    "wheels": lambda text: PythonRuntime(packages=("a==1",), wheelhouse=Source(f"https://example.com/{text}.tar")),
    "ofed": lambda text: Ofed(source=Source(f"https://example.com/{text}.tgz")),
    "registry": lambda text: RegistryLogin(user=f"u{text}"),
    "repository": lambda text: AptRepository(name="x", url=text, key=Source(f"https://example.com/{text}")),
    "hostfile": lambda text: Hostfile(path=f"/tmp/{text}x"),
    "hosts": lambda _: HostsFile(),
    "mesh": lambda _: SshMesh(),
    "netplan": lambda _: NetplanRoce(),
    "packages": lambda _: Packages(names=("curl",)),
}


def hostile_facts(text: str) -> GuestFacts:
    peer = Peer(name=text, address=text, roce_address=text)
    values = {**NODE_1.values, "proxy": f"http://{text}", "mesh_user": text, "ssh_port": text}
    return replace(NODE_1, name=text, cluster=text, peers=(peer,), roce_mac=text, values=values)


def hostile_wish(text: str) -> wanted.Wanted:
    """Return a wish with the names that a playbook lets through at their worst."""
    with suppress(Wrong):
        return replace(wanted.of(()), mesh=SshMesh(user=text), container=ContainerSshd(image="x"))
    return replace(wanted.of(()), container=ContainerSshd(image="x"))


def everything(step: Step, facts: GuestFacts) -> list[str]:
    """Return every command a step has for a guest."""
    shell = Recorder()
    step.apply(shell, facts)
    told = [command for command in shell.told if not command.startswith(("write ", "put "))]
    return [*step.probes(facts).values(), *(each for asked in shell.asked for each in asked.values()), *told]


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
    except Wrong:
        return  # refused when the playbook is read, which is as good
    harmless(everything(step, NODE_1))


@pytest.mark.parametrize("kind", MADE)
@settings(max_examples=15, deadline=None)
@given(text=HOSTILE)
def test_no_name_of_a_node_or_a_cluster_is_run(kind: str, text: str) -> None:
    facts = hostile_facts(text)
    harmless(everything(MADE[kind]("a"), facts))


@settings(max_examples=40, deadline=None)
@given(text=HOSTILE)
def test_no_name_is_run_by_verify(text: str) -> None:
    shell = Recorder(name=text)
    harmless([each.command for each in verify.verify(shell, hostile_facts(text), hostile_wish(text))])


@given(text=HOSTILE)
def test_a_path_reaches_the_guest_as_it_is(text: str) -> None:
    if "\n" not in text:
        probe = File(path=f"/tmp/{text}x", text="x").probes(NODE_1)["file"]
        assert shlex.split(probe).count(f"/tmp/{text}x") == 2


@given(text=HOSTILE)
def test_a_hostile_mac_or_address_stays_one_value_of_netplans_file(text: str) -> None:
    def lines(address: str) -> list[str]:
        values = {"mac": address, "address": address, "mtu": 9000}
        rendered = render.render(render.shipped_template("netplan-roce.yaml"), values)
        return [line.partition('"')[0] for line in rendered.splitlines()]

    assert lines(text) == lines("x")


@given(text=HOSTILE)
def test_the_interface_is_looked_for_by_the_mac_alone(text: str) -> None:
    assert f"mac={shlex.quote(text.lower())} " in rdma.interface(hostile_facts(text))
