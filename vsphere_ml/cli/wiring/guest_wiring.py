"""Builds what a cluster's guests are entered and configured with: connections, playbooks, settings and secrets."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.cli.wiring.known_jobs import guests_folder, state_folder
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.model.spec import FirstBootBy, GuestAccess, LoginKey
from vsphere_ml.core.order import fold_names

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from pathlib import Path

    from vsphere_ml.cli.terminal import Terminal
    from vsphere_ml.cli.wiring.site_wiring import SystemClock
    from vsphere_ml.core.model.guest import Playbook
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.nodes.firstboot import FirstBoot
    from vsphere_ml.core.plan.changes import Change
    from vsphere_ml.core.ports.events import Listener
    from vsphere_ml.core.ports.vcenter import GuestPlace
    from vsphere_ml.core.secret import Secret
    from vsphere_ml.flows.cluster.proposal import GuestConfig
    from vsphere_ml.flows.guests.guests import GuestTargets, StepInputs
    from vsphere_ml.guest.events import GuestListener
    from vsphere_ml.ssh.guests import SshGuests

MESH_KEY, MESH_PUBLIC_KEY = "mesh_key", "mesh_public_key"


def home(spec: ClusterSpec) -> Path:
    """Return where vsml keeps what it knows of a vCenter's clusters."""
    return state_folder(spec.vcenter.lab)


def folder(spec: ClusterSpec) -> Path:
    """Return where the pinned host keys, the keys and the logs of a cluster's guests lie."""
    return guests_folder(spec.name, spec.vcenter.lab)


def guests(spec: ClusterSpec, clock: SystemClock, parallel: int = 32, *, sudo: bool = True) -> SshGuests:
    """Return the cluster's guests over SSH; the password for sudo is read only where something is to run as root."""
    from vsphere_ml.config.secrets.guest_secrets import secret
    from vsphere_ml.ssh.guests import SshGuests

    source = spec.guest.sudo_password
    password = (
        secret("sudo_password", source, f"{spec.guest.user}@{spec.name}", os.environ) if sudo and source else None
    )
    access = replace(spec.guest, key_file=_key_file(spec))
    return SshGuests(
        access=access,
        folder=folder(spec),
        clock=clock,
        sudo_password=password,
        own_key=spec.guest.key_file is None and access.key_file is not None,
        parallel=parallel,
    )


def finder(
    spec: ClusterSpec, terminal: Terminal, notify: Listener, clock: SystemClock, *, refresh: bool = False
) -> Callable[[Collection[str]], GuestTargets]:
    """Return what asks vCenter where guests answer, and says that it does."""

    def ask(only: Collection[str]) -> GuestTargets:
        from vsphere_ml.cli.wiring import site_wiring
        from vsphere_ml.flows.guests import boot
        from vsphere_ml.flows.guests.guests import find
        from vsphere_ml.flows.run_context import RunContext

        why = "" if refresh else ": not all are known from an earlier run, or one does not answer"
        terminal.say(f"asking vCenter for addresses{why}")
        with site_wiring.vcenter(spec.vcenter, terminal) as vcenter:
            return find(spec, boot.read_running_site(RunContext(spec, vcenter, notify, clock)), only)

    return ask


def enter(
    spec: ClusterSpec, terminal: Terminal, made: SshGuests, names: Collection[str], *, refresh: bool = False
) -> tuple[GuestPlace, ...]:
    """Return where these guests answer by vCenter's word, their host keys pinned. Raises why one cannot be entered."""
    from vsphere_ml.cli.wiring import site_wiring
    from vsphere_ml.flows.guests import boot

    what = "the address" if len(names) == 1 else "the addresses"
    why = "" if refresh else ": not known from an earlier run, or nobody answers there"
    terminal.say(f"asking vCenter for {what} of {', '.join(fold_names(names))}{why}")
    with site_wiring.run_context(spec, terminal) as run:
        found = boot.wait_ready(run, boot.read_running_site(run), made, boot.start_deadline(0.0, run.clock), only=names)
    for error in found.errors.values():
        raise error
    made.addresses.remember(found.places)
    return found.places


def last_places(spec: ClusterSpec) -> Mapping[str, GuestPlace]:
    """Return where each guest answered last."""
    from vsphere_ml.ssh.addresses import AddressCache

    return AddressCache(folder(spec) / "addresses.json").places()


def forget(spec: ClusterSpec, changes: Iterable[Change]) -> None:
    """Drop the addresses of the VMs that a plan makes or deletes."""
    from vsphere_ml.core.plan.changes import CloneVm, DeleteVm
    from vsphere_ml.ssh.addresses import AddressCache

    names = [each.vm for each in changes if isinstance(each, CloneVm | DeleteVm)]
    AddressCache(folder(spec) / "addresses.json").forget(names)


def for_guests(
    spec: ClusterSpec,
    notify: GuestListener,
    clock: SystemClock,
    *,
    wait_s: float = 0.0,
    skip: bool = False,
    rolling: int = 0,
) -> GuestConfig:
    """Return what the cluster's guests get, with every mistake in it reported before anything is looked at."""
    from vsphere_ml.flows.cluster.proposal import GuestConfig

    answers = first_boots(spec)
    alone = "--skip-guests" if skip else _left_alone(spec)
    if alone:
        return GuestConfig(first_boots=answers, skipped_guests=alone)
    from vsphere_ml.flows.guests.guests import GuestPhase

    books = playbooks(spec)
    phase = GuestPhase(
        guests=guests(spec, clock),
        playbooks=books,
        given=step_inputs(spec, books),
        notify=notify,
        wait_s=wait_s,
        rolling=rolling,
    )
    return GuestConfig(first_boots=answers, phase=phase)


def _left_alone(spec: ClusterSpec) -> str:
    if spec.guest == GuestAccess():
        return "the cluster file has no [guest]"
    return "" if spec.guest.playbooks else "the cluster file names no playbooks"


def first_boots(spec: ClusterSpec) -> Mapping[str, FirstBoot]:
    """Return new guests' first-boot data, by node; nothing where the template has all of it."""
    if spec.guest.first_boot is FirstBootBy.NONE:
        return {}
    from vsphere_ml.guest import firstboot

    keys = _public_keys(spec) if spec.guest.first_boot is FirstBootBy.CLOUD_INIT else ()
    return firstboot.first_boots(spec, keys)


def _key_file(spec: ClusterSpec) -> Path | None:
    """Return the private key that signs in; None for those of the SSH agent."""
    from vsphere_ml.ssh.keys.key_pairs import key_pair

    if spec.guest.key_file is not None or spec.guest.key is LoginKey.AGENT:
        return spec.guest.key_file
    return key_pair(folder(spec) / "login", spec.name).private


def _public_keys(spec: ClusterSpec) -> tuple[str, ...]:
    """Return what new guests let in, as lines of authorized_keys."""
    from vsphere_ml.ssh.keys import key_pairs as keys

    file = _key_file(spec)
    return keys.of_agent() if file is None else (keys.public(file, comment=f"vsml {spec.name}"),)


def playbooks(spec: ClusterSpec) -> tuple[Playbook, ...]:
    """Return the playbooks that the cluster file names, each valid as a whole and with every file it brings there."""
    from vsphere_ml.cli.wiring import playbook_wiring

    if not spec.guest.playbooks:
        raise ConfigError(
            "the cluster file names no playbooks",
            code="playbook.none",
            target="guest.playbooks",
            hint='[guest] with playbooks = ["base"], or with paths of your own such as "./mine.toml"',
        )
    return playbook_wiring.read_with_files(spec)


def read_playbooks(spec: ClusterSpec) -> tuple[Playbook, ...]:
    """Return the playbooks that the cluster file names, perhaps none, whether what they bring there exists or not."""
    from vsphere_ml.cli.wiring import playbook_wiring

    return playbook_wiring.read(spec)


def step_inputs(spec: ClusterSpec, wanted: tuple[Playbook, ...]) -> StepInputs:
    """Return the file's settings and secrets; a key pair for the nodes' mesh is made where a playbook wants one."""
    from vsphere_ml.config.secrets.guest_secrets import secret
    from vsphere_ml.core.secret import Secret
    from vsphere_ml.flows.guests.guests import StepInputs
    from vsphere_ml.ssh.keys.key_pairs import key_pair

    values = dict(spec.guest.settings)
    secrets: dict[str, Secret] = {
        name: secret(name, source, f"{name}@{spec.name}", os.environ) for name, source in spec.guest.secrets.items()
    }
    if MESH_KEY not in secrets and any("ssh_mesh" in book.kinds for book in wanted):
        pair = key_pair(folder(spec) / "mesh", spec.name)
        secrets[MESH_KEY] = Secret(pair.private.read_text(encoding="utf-8"))
        values.setdefault(MESH_PUBLIC_KEY, pair.public)
    return StepInputs(values=values, secrets=secrets)
