"""An ESXi host in memory: kernel setting, graphics, firmware and functions, each with a next boot and a now."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from vsphere_ml.core.catalog.gpu_capacity import MIG
from vsphere_ml.core.model.esxi_state import NO_LOCKDOWN, DesiredState, HostConnection
from vsphere_ml.core.model.inventory import VgpuProfile

if TYPE_CHECKING:
    from vsphere_ml.core.model.esxi_state import DrsState, Lockdown, Tie
    from vsphere_ml.core.model.inventory import Host, NicPort, PciAddress, Pvrdma


@dataclass(slots=True)
class Function:
    """A port: [next boot, now] of all that it has."""

    vfs: list[int]
    passthrough: list[bool]
    ats: list[bool]
    sriov: tuple[bool, int] = (True, 8)  # SRIOV_EN and NUM_OF_VFS of its firmware


@dataclass(slots=True)
class FakeEsx:
    """One host. `fails` names what it does wrong."""

    host: Host
    kernel: list[str] | None  # next boot, now; None: this ESXi has no such setting
    functions: dict[PciAddress, Function]
    esxcli: bool = True
    option: bool = True
    graphics: list[str] = field(default_factory=lambda: ["sharedDirect", "sharedDirect"])
    mig: dict[PciAddress, list[bool]] = field(default_factory=dict)  # of its GPUs: next boot, now
    drivers: dict[str, list[str]] = field(default_factory=lambda: {"nmlx5_core": ["", ""], "nmlx5_rdma": ["", ""]})
    pvrdma: Pvrdma | None = None
    rebinds: bool = True  # passthrough is switched at once
    gpus: dict[str, list[str]] = field(default_factory=dict)  # graphics types of GPUs that have one of their own
    connection: HostConnection = HostConnection.CONNECTED
    maintenance: bool = False
    boots: int = 1
    ssh: bool = True
    mft: bool = True
    record: str = ""
    fails: set[str] = field(default_factory=set)
    tools_missing: set[str] = field(default_factory=set)
    agents: set[str] = field(default_factory=set)
    lockdown: Lockdown = NO_LOCKDOWN
    desired: DesiredState = field(default_factory=DesiredState)
    drs: DrsState | None = None  # what DRS does with the host's VMs
    ties: dict[str, Tie] = field(default_factory=dict)  # by VM, what keeps it here
    addresses: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.host.name

    def boot(self) -> None:
        """Put in force what was configured."""
        self.boots += 1
        if self.kernel is not None:
            self.kernel[1] = self.kernel[0]
        self.graphics[1] = self.graphics[0]
        for gpu in self.gpus.values():
            gpu[1] = gpu[0]
        for function in self.functions.values():
            function.vfs[1] = function.vfs[0]
            function.passthrough[1] = function.passthrough[0]
            function.ats[1] = function.ats[0]
        for mode in (*self.mig.values(), *self.drivers.values()):
            mode[1] = mode[0]  # type: ignore[index]
        self.connection = HostConnection.CONNECTED


def esx(host: Host, **knobs: object) -> FakeEsx:
    """Return the host as its ESXi version ships it: the kernel's setting by the published lists, no ATS in firmware."""
    version = tuple(int(part) for part in host.version.split("."))
    known = {True: "TRUE", False: "FALSE"}[version >= (7, 0, 3)] if version >= (7, 0, 2) else None
    plain = FakeEsx(
        host=host,
        kernel=None if known is None else [known, known],
        option=version >= (7, 0, 3),
        functions={
            port.address: Function([port.vfs, port.vfs], [port.passthrough, port.passthrough], [False, False])
            for port in host.nics
        }
        | {gpu.address: Function([0, 0], [gpu.active, gpu.active], [False, False]) for gpu in host.passthrough_gpus},
        rebinds=host.rebinds,
        graphics=[host.gpus[0].graphics_type] * 2 if host.gpus else ["shared", "shared"],
        pvrdma=host.pvrdma,
        mig={gpu.address: [gpu.vgpu_mode == MIG] * 2 for gpu in host.gpus},
    )
    return replace(plain, **knobs)  # type: ignore[arg-type]


def as_seen(machine: FakeEsx, host: Host) -> Host:
    """Return a host as vCenter shows it with the settings that are in force. Its profiles are those of its GPUs' modes.

    The names of MIG profiles are written by hand, in the form of NVIDIA's list.
    """
    sliced = {address for address, mode in machine.mig.items() if mode[1]}
    gpus = tuple(
        replace(
            gpu,
            graphics_type=machine.gpus.get(gpu.address, machine.graphics)[1],
            vgpu_mode=MIG if gpu.address in sliced else gpu.vgpu_mode,
        )
        for gpu in host.gpus
    )
    nics = tuple(_port(machine, nic) for nic in host.nics)
    direct_path_gpus = tuple(
        replace(gpu, active=machine.functions[gpu.address].passthrough[1]) for gpu in host.passthrough_gpus
    )
    more = (VgpuProfile(name="grid_a100-3-20c"),) if sliced else ()
    left = tuple(
        gpu for gpu in gpus if not any(each.active and each.address == gpu.address for each in direct_path_gpus)
    )
    profiles = (*host.profiles, *(each for each in more if each not in host.profiles))
    return replace(
        host, gpus=left, nics=nics, passthrough_gpus=direct_path_gpus, profiles=profiles, pvrdma=machine.pvrdma
    )


def _port(machine: FakeEsx, nic: NicPort) -> NicPort:
    function = machine.functions[nic.address]
    return replace(nic, vfs=function.vfs[1], sriov_enabled=function.vfs[1] > 0, passthrough=function.passthrough[1])
