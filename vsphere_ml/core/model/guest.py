"""Guests as values and ports: what a check may do, what an apply may do, and what a step is.

The types keep a promise: a check is handed a `Probe`, which can only ask; an apply is handed a `Shell`. Asking is done
in batches, since a round trip costs far more than a command.
"""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Protocol

from vsphere_ml.core.model.device_kinds import NicKind
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from vsphere_ml.core.secret import Secret


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """What one command said. `status` is its exit status; text is decoded as UTF-8, bad bytes replaced."""

    status: int
    out: str
    err: str = ""

    @property
    def ok(self) -> bool:
        return self.status == 0

    @property
    def text(self) -> str:
        return self.out.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """Another node of the cluster, as a guest needs to know it."""

    name: str
    address: str  # of the management NIC, without a prefix length
    roce_address: str | None = None
    more_roce_addresses: tuple[str, ...] = ()  # of its other fast NICs
    slots: int = 1  # GPUs, hence MPI ranks


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestFacts:
    """What a step may know of the guest it is about: its place in the cluster, and what vCenter says of it."""

    name: str
    cluster: str
    peers: tuple[Peer, ...]  # every node, this one included, in the order of names
    gpus: int
    profile: str  # grid_a100-40c; empty for GPUs that are handed through whole
    linked: bool = False  # its GPUs are joined by NVLink
    nic: NicKind = NicKind.SRIOV  # of its fast NICs
    vgpu_manager: str | None = None  # the host driver's version, when the host's VIBs could be read
    roce_mac: str | None = None  # of the fast NIC, when vCenter knows it
    more_roce_macs: tuple[str | None, ...] = ()  # of its other fast NICs, None for those that vCenter does not know
    roce_number: int = 1  # which of its fast NICs `roce_mac` and its own `roce_address` are of
    nccl_topology: str = ""  # where its GPUs and NIC sit on its host, for NCCL, with labels for bus ids; "" if not read
    lab: bool = False  # the guest stands in for hardware
    values: Mapping[str, str] = field(default_factory=dict)  # the file's [guest] settings that steps read
    secrets: Mapping[str, Secret] = field(default_factory=dict)


class Probe(Protocol):
    """A guest that can only be asked."""

    @property
    def name(self) -> str: ...

    def ask(self, commands: Mapping[str, str]) -> Mapping[str, CommandAnswer]:
        """Run read-only shell snippets in one round trip, as root, and return their answers by the same names.

        A snippet that fails is an answer like any other. GuestError `guest.unreachable` or `guest.timeout` otherwise.
        """
        ...


class Shell(Probe, Protocol):
    """A guest that can be changed."""

    def run(
        self, command: str, *, stdin: Secret | str | None = None, timeout_s: float = 1800.0, as_root: bool = True
    ) -> CommandAnswer:
        """Run a command as root, or as the user who signs in; GuestError `guest.command-failed` when it fails.

        The error has the status and the last lines.
        """
        ...

    def write(self, path: str, text: Secret | str, *, mode: int = 0o644, owner: str = "root:root") -> None:
        """Replace a file as a whole, or leave it as it was. Missing folders are made."""
        ...

    def put(self, local: Path, path: str, *, mode: int = 0o644) -> None:
        """Copy a local file to the guest."""
        ...

    def get(self, path: str, local: Path) -> None:
        """Copy a file of the guest's to this machine, entire or not at all; GuestError `guest.file-unreadable`."""
        ...

    def reboot(self, deadline_s: float = 900.0) -> None:
        """Reboot and return when the guest answers again with another boot id."""
        ...


class StepNeed(StrEnum):
    """What a guest needs after a step was applied."""

    NOTHING = "nothing"
    REBOOT = "reboot"  # once, at the end of the playbook


class Step(Protocol):
    """One wanted state of a guest. A frozen dataclass; its fields are what is wanted."""

    KIND: ClassVar[str] = ""  # its name in playbooks; a step that is made by another has none
    AFTER_REBOOT: ClassVar[bool] = False  # whether what it asks answers only after a reboot that is due

    @property
    def title(self) -> str:
        """Return what a person calls the step: `package nfs-common`."""
        ...

    def probes(self, facts: GuestFacts) -> Mapping[str, str]:
        """Return the read-only shell snippets that the check needs answered, by name. Pure."""
        ...

    def drift(self, seen: Mapping[str, CommandAnswer], facts: GuestFacts) -> str | None:
        """Return in words what is missing in the guest, or None. Pure: all it knows is the answers to its probes."""
        ...

    def apply(self, shell: Shell, facts: GuestFacts) -> StepNeed:
        """Provide what is missing. Believed only after its probes were asked again and nothing is missing."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Playbook:
    """Steps in order, read from a file and valid as a whole. `digest` is the SHA-256 of what it was read from."""

    name: str
    about: str
    steps: tuple[Step, ...]
    digest: str

    @property
    def kinds(self) -> frozenset[str]:
        """Return the kinds of its steps."""
        return frozenset(step.KIND for step in self.steps)
