"""The ESXi hosts of a FakeVCenter, behind the ports `Hosts` and `HostShells`: they share its VMs and its clock."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tests.fakes import mft, smi
from tests.fakes.esx import as_seen
from tests.fakes.site import Cut
from vsphere_ml.core.errors import VSphereError
from vsphere_ml.core.hosts.host_changes import (
    AwaitHost,
    EnterMaintenance,
    ExitMaintenance,
    NoteRunning,
    PowerOnAgain,
    Reboot,
    SetDriver,
    SetFirewall,
    SetFunctions,
    SetGraphics,
    SetKernel,
    SetPassthrough,
    SetVmknic,
    ShutDown,
    WriteRecord,
)
from vsphere_ml.core.model.esxi_state import (
    Automation,
    EsxiHostState,
    FunctionSeen,
    GraphicsSeen,
    HostConnection,
    KernelOption,
    Tie,
    VmOnHost,
)
from vsphere_ml.core.model.host_settings import AccessMethod
from vsphere_ml.core.model.inventory import Pvrdma
from vsphere_ml.core.tools import roce

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from tests.fakes.esx import FakeEsx, Function
    from tests.fakes.site import FakeVCenter
    from vsphere_ml.core.hosts.host_changes import HostChange
    from vsphere_ml.core.model.guest import CommandAnswer
    from vsphere_ml.core.model.inventory import HostRef, Vm, VmRef


@dataclass(slots=True)
class FakeHosts:
    """`Hosts` and `HostShells` over hosts in memory.

    With `cut_after`, the process that uses it is killed after so many changes; a reboot counts twice, since the host
    can be left while it is down.
    """

    site: FakeVCenter
    there: dict[HostRef, FakeEsx]
    starts_service: bool = True
    user: str = "root"
    cut_after: int | None = None
    changes: list[HostChange] = field(default_factory=list)
    commands: list[tuple[str, str]] = field(default_factory=list)
    resume: dict[VmRef, str] = field(default_factory=dict)
    steps: int = 0
    before: Callable[[HostChange], None] | None = None
    _down: set[HostRef] = field(default_factory=set)
    _dead: bool = False

    # Hosts

    def see(self, hosts: Collection[HostRef]) -> Mapping[HostRef, EsxiHostState]:
        self._live()
        return {ref: self._sight(self.there[ref]) for ref in hosts if ref in self.there}

    def perform(self, change: HostChange, deadline_s: float, notify: Callable[[str], None]) -> None:
        self._live()
        if self.before is not None:
            self.before(change)
        if change.host not in self.there:
            raise VSphereError(f"{change.host_name} is gone", code="vsphere.not-found")
        machine = self.there[change.host]
        if machine.connection is not HostConnection.CONNECTED and not isinstance(change, AwaitHost | WriteRecord):
            raise VSphereError(f"{machine.name} does not answer", code="vsphere.host-not-connected")
        self._perform(change, machine, deadline_s, notify)
        self.changes.append(change)
        self._count()

    def ssh(self, host: HostRef, *, run: bool) -> None:
        self._live()
        self.there[host].ssh = run

    def _perform(  # noqa: C901, PLR0912 - an arm a change
        self, change: HostChange, machine: FakeEsx, deadline_s: float, notify: Callable[[str], None]
    ) -> None:
        match change:
            case WriteRecord():
                machine.record = change.text
            case NoteRunning():
                self.resume[change.vm] = change.host_name
            case ShutDown():
                self._shut_down(change, machine, deadline_s)
            case EnterMaintenance():
                self._enter(machine, deadline_s)
            case SetKernel():
                self._set_kernel(change, machine)
            case SetGraphics():
                machine.graphics[0] = change.value
                for gpu, kind in change.gpus:
                    machine.gpus.setdefault(gpu, [machine.graphics[1]] * 2)[0] = kind
            case SetFunctions():
                machine.functions[change.port].vfs[0] = change.count
            case SetPassthrough():
                machine.functions[change.port].passthrough[0] = change.value
                if change.at_once and machine.rebinds:
                    machine.functions[change.port].passthrough[1] = change.value
                    self._show(machine)
            case SetDriver():
                options = machine.drivers[change.module]
                options[0] = roce.merge_options(options[0], dict(change.keys))
            case SetVmknic() | SetFirewall():
                self._pvrdma(machine, change)
            case Reboot():
                self._reboot(machine, deadline_s, notify)
            case AwaitHost():
                self._come_back(machine, deadline_s)
            case ExitMaintenance():
                self._show(machine, maintenance=False)
            case PowerOnAgain():
                self._power_on(change, machine)
            case _:
                raise AssertionError(f"firmware is set through a shell: {change}")

    def _shut_down(self, change: ShutDown, machine: FakeEsx, deadline_s: float) -> None:
        vm = self._vm(change.vm)
        if not vm.powered_on:
            return
        if vm.name in machine.tools_missing and not change.hard:
            self.site.clock.sleep(deadline_s)
            raise VSphereError(f"{vm.name} is still powered on", code="ats.vm-stays-on", target=vm.name)
        self._power(vm, on=False)

    def _migrate(self, machine: FakeEsx) -> None:
        """Move to another host what DRS moves by itself: VMs without any device of theirs."""
        others = [ref for ref in self.there if ref != machine.host.ref]
        if machine.drs is None or machine.drs.automation is not Automation.FULL or not others:
            return
        tied = {vm.ref for vm in self._vms(machine) if vm.tie is not Tie.NONE}
        self.site.inventory = replace(
            self.site.inventory,
            vms=tuple(
                replace(vm, host=others[0]) if vm.host == machine.host.ref and vm.ref not in tied else vm
                for vm in self.site.inventory.vms
            ),
        )

    def _enter(self, machine: FakeEsx, deadline_s: float) -> None:
        self._migrate(machine)
        if any(vm.on and not vm.agent for vm in self._vms(machine)) or "maintenance" in machine.fails:
            self.site.clock.sleep(deadline_s)
            raise VSphereError(f"{machine.name}: the operation timed out", code="vsphere.task-failed")
        for vm in self._vms(machine):
            if vm.agent and vm.on:
                self._power(self._vm(vm.ref), on=False)
        self._show(machine, maintenance=True)
        if "maintenance answer" in machine.fails:
            raise VSphereError(f"{machine.name}: the connection broke", code="vcenter.interrupted")

    def _set_kernel(self, change: SetKernel, machine: FakeEsx) -> None:
        open_door = machine.esxcli if change.access is AccessMethod.ESXCLI else machine.option
        if machine.kernel is None or not open_door or "kernel" in machine.fails:
            raise VSphereError(f"{machine.name} refuses kernel setting atsSupport", code="ats.refused")
        if "kernel forgets" not in machine.fails:
            machine.kernel[0] = change.value

    def _pvrdma(self, machine: FakeEsx, change: SetVmknic | SetFirewall) -> None:
        before = machine.pvrdma or Pvrdma(vmknic="", firewall=False)
        tag = {"vmknic": change.value} if isinstance(change, SetVmknic) else {"firewall": change.value}
        machine.pvrdma = replace(before, **tag)
        self._show(machine)

    def _reboot(self, machine: FakeEsx, deadline_s: float, notify: Callable[[str], None]) -> None:
        if not machine.maintenance:
            raise VSphereError(f"{machine.name} is not in maintenance mode", code="vsphere.invalid-state")
        machine.connection = HostConnection.NOT_RESPONDING
        self._down.add(machine.host.ref)
        self._show(machine)
        self._count()
        notify("rebooting")
        self._come_back(machine, deadline_s)

    def _come_back(self, machine: FakeEsx, deadline_s: float) -> None:
        if "reboot" in machine.fails:
            self.site.clock.sleep(deadline_s)
            raise VSphereError(
                f"{machine.name} has not come back in time", code="host.reboot-timeout", target=machine.name
            )
        self.site.clock.sleep(240.0)
        if machine.host.ref in self._down:
            self._down.discard(machine.host.ref)
            forgets = "firmware forgets" in machine.fails
            for function in machine.functions.values() if forgets else ():
                function.ats[0] = function.ats[1]
            machine.boot()
        self._show(machine)

    def _power_on(self, change: PowerOnAgain, machine: FakeEsx) -> None:
        if machine.maintenance:
            raise VSphereError(f"{machine.name} is in maintenance mode", code="vsphere.invalid-state")
        self._power(self._vm(change.vm), on=True)
        self.resume.pop(change.vm, None)

    # HostShells

    def run(self, host: str, command: str, timeout_s: float = 120.0) -> CommandAnswer:
        self._live()
        machine = next(each for each in self.there.values() if each.name == host)
        self.commands.append((host, command))
        if not machine.ssh or machine.connection is not HostConnection.CONNECTED or "ssh" in machine.fails:
            raise VSphereError(f"{host} cannot be reached over SSH", code="host.unreachable", target=host)
        if command.startswith("nvidia-smi "):
            answer = smi.run(machine, command)
            self._show(machine)
        else:
            answer = mft.run(machine, command)
        if " set " in command or " -mig " in command:
            self._count()
        return answer

    def drop(self, host: str) -> None:
        pass

    # What tests ask

    def mend(self, *, booted: bool = True) -> None:
        """Let the next run begin. A host that was going down when the last one was killed has booted meanwhile."""
        self._dead, self.cut_after = False, None
        self.site.mend()
        for ref in tuple(self._down) if booted else ():
            if "reboot" not in self.there[ref].fails:
                self._come_back(self.there[ref], 0.0)

    def _live(self) -> None:
        if self._dead:
            raise Cut

    def _count(self) -> None:
        self.steps += 1
        if self.cut_after is not None and self.steps >= self.cut_after:
            self._dead = True
            self.site._dead = True  # one process is killed
            raise Cut

    def _sight(self, machine: FakeEsx) -> EsxiHostState:
        gpus = {str(gpu.address): machine.graphics for gpu in machine.host.gpus} | machine.gpus
        seen = GraphicsSeen(
            default=machine.graphics[0],
            devices={gpu: kinds[0] for gpu, kinds in machine.gpus.items()},
            now={gpu: kinds[1] for gpu, kinds in gpus.items()},
        )
        return EsxiHostState(
            ref=machine.host.ref,
            name=machine.name,
            version=machine.host.version,
            build=machine.host.build,
            cpu_vendor=machine.host.cpu_vendor,
            connection=machine.connection,
            maintenance=machine.maintenance,
            boot_time=f"2026-01-01T00:00:{machine.boots:02}+00:00",
            kernel=_kernel(machine),
            graphics=seen,
            functions={address: _function(each) for address, each in machine.functions.items()},
            vms=self._vms(machine),
            ssh_running=machine.ssh,
            record=machine.record,
            rebinds=machine.rebinds,
            drivers={module: options[0] for module, options in machine.drivers.items()},
            pvrdma=machine.pvrdma,
            drs=machine.drs,
            lockdown=machine.lockdown,
            desired=machine.desired,
        )

    def _vms(self, machine: FakeEsx) -> tuple[VmOnHost, ...]:
        vms = sorted(self.site.inventory.vms, key=lambda vm: (vm.name, vm.ref))
        return tuple(
            VmOnHost(
                ref=vm.ref,
                name=vm.name,
                on=vm.powered_on,
                cluster_mark=vm.cluster_mark,
                resume=self.resume.get(vm.ref),
                agent=vm.name in machine.agents,
                tools=vm.name not in machine.tools_missing,
                tie=machine.ties.get(vm.name, Tie.NONE),
                addresses=frozenset(filter(None, [machine.addresses.get(vm.name, "")])),
            )
            for vm in vms
            if vm.host == machine.host.ref and not vm.template
        )

    def _vm(self, ref: VmRef) -> Vm:
        return next(vm for vm in self.site.inventory.vms if vm.ref == ref)

    def _power(self, vm: Vm, *, on: bool) -> None:
        vms = tuple(replace(each, powered_on=on) if each.ref == vm.ref else each for each in self.site.inventory.vms)
        self.site.inventory = replace(self.site.inventory, vms=vms)

    def _show(self, machine: FakeEsx, *, maintenance: bool | None = None) -> None:
        """Let the inventory report what the host has."""
        machine.maintenance = machine.maintenance if maintenance is None else maintenance
        connected = machine.connection is HostConnection.CONNECTED
        hosts = tuple(
            replace(as_seen(machine, each), connected=connected, maintenance=machine.maintenance)
            if each.ref == machine.host.ref
            else each
            for each in self.site.inventory.hosts
        )
        self.site.inventory = replace(self.site.inventory, hosts=hosts)


def _kernel(machine: FakeEsx) -> KernelOption:
    if machine.connection is not HostConnection.CONNECTED:
        return KernelOption(access=AccessMethod.NONE, why="the host does not answer")
    if machine.kernel is None:
        return KernelOption(access=AccessMethod.NONE, why="esxcli lists no such setting")
    if machine.esxcli:
        return KernelOption(access=AccessMethod.ESXCLI, configured=machine.kernel[0], runtime=machine.kernel[1])
    if machine.option:
        return KernelOption(access=AccessMethod.OPTIONS, configured=machine.kernel[0])
    return KernelOption(access=AccessMethod.NONE, why="esxcli over the API is refused (NoPermission), and no option")


def _function(each: Function) -> FunctionSeen:
    return FunctionSeen(
        passthrough=each.passthrough[0],
        passthrough_now=each.passthrough[1],
        vfs=each.vfs[0],
        vfs_now=each.vfs[1],
    )
