"""The hosts port, over pyVmomi: one ESXi host at a time is seen, changed, rebooted and waited for."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, TypeVar, assert_never

from pyVmomi import vim, vmodl

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
    SetFirmware,
    SetFunctions,
    SetGraphics,
    SetKernel,
    SetMig,
    SetPassthrough,
    SetVmknic,
    ShutDown,
    WriteRecord,
    describe_host_change,
)
from vsphere_ml.core.model.marks import HOST_RECORD_ATTRIBUTE, RESUME_ATTRIBUTE
from vsphere_ml.vsphere.connection.required import UNEXPECTED
from vsphere_ml.vsphere.connection.session import InterruptedWriteError
from vsphere_ml.vsphere.esxi import esxi_state
from vsphere_ml.vsphere.esxi.esx_settings import EsxiSettings
from vsphere_ml.vsphere.faults import translate
from vsphere_ml.vsphere.inventory.collect import collect_objects, managed_object
from vsphere_ml.vsphere.inventory.custom_attributes import CustomAttributes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from vsphere_ml.core.hosts.host_changes import HostChange
    from vsphere_ml.core.model.esxi_state import EsxiHostState
    from vsphere_ml.core.model.inventory import HostRef
    from vsphere_ml.vsphere.connection.session import Session

    OnProgress = Callable[[str], None]

T = TypeVar("T")
PAUSE_S = 1.0
TOOLS_S = 60.0  # until VMware Tools run in a guest that boots
GRACE_S = 30.0  # beyond a deadline that vCenter itself is given, and until a host goes down


class EsxHosts:
    """`Hosts` over a signed-in session, which several threads may share."""

    def __init__(self, session: Session, *, pause_s: float = PAUSE_S) -> None:
        self._session = session
        self._fields = CustomAttributes(session)
        self._settings = EsxiSettings(session)
        self._attributes = threading.Lock()
        self._pause_s = pause_s

    def see(self, hosts: Collection[HostRef]) -> Mapping[HostRef, EsxiHostState]:
        """Return these hosts as they are now. See `Hosts.see`."""
        with self._attributes:
            self._read(self._fields.load)
        found = [managed_object(self._session, "vim.HostSystem", ref) for ref in hosts]
        return self._read(lambda: esxi_state.see(self._session, self._fields, found))

    def _read(self, call: Callable[[], T]) -> T:
        return self._explained("", "looking at the hosts", lambda: self._session.read(call))

    def perform(self, change: HostChange, deadline_s: float, notify: OnProgress) -> None:
        """Make a change and return when it is made. See `Hosts.perform`."""
        until = time.monotonic() + deadline_s
        target = getattr(change, "vm_name", change.host_name)
        self._explained(
            target, f"{change.host_name}: {describe_host_change(change)}", lambda: self._perform(change, until, notify)
        )

    def ssh(self, host: HostRef, *, run: bool) -> None:
        """Start or stop the host's SSH service."""
        action = "starting SSH" if run else "stopping SSH"
        self._explained(str(host), action, lambda: self._settings.ssh(self._host(host), run=run))

    def _perform(self, change: HostChange, until: float, notify: OnProgress) -> None:  # noqa: C901, PLR0912 - an arm a change
        host = self._host(change.host)
        match change:
            case WriteRecord():
                self._write(host, HOST_RECORD_ATTRIBUTE, change.text, change.host_name)
            case NoteRunning():
                self._write(self._vm(change.vm), RESUME_ATTRIBUTE, change.host_name, change.vm_name)
            case ShutDown():
                self._shut_down(change, until, notify)
            case EnterMaintenance():
                self._enter(host, until, notify)
            case SetKernel():
                self._settings.kernel(host, change)
            case SetGraphics():
                self._settings.graphics(host, change)
            case SetFunctions() | SetPassthrough():
                self._settings.function(host, change)
            case SetDriver():
                self._settings.driver(host, change)
            case SetVmknic():
                self._settings.vmknic(host, change)
            case SetFirewall():
                self._settings.firewall(host, change)
            case Reboot():
                self._reboot(change, host, until, notify)
            case AwaitHost():
                self._await(host, change.host_name, None, until, notify)
            case ExitMaintenance():
                self._exit(host, until, notify)
            case PowerOnAgain():
                self._power_on(change, host, until, notify)
            case SetFirmware() | SetMig():
                raise AssertionError("that takes a shell")
            case _:
                assert_never(change)

    def _host(self, ref: HostRef) -> Any:
        return managed_object(self._session, "vim.HostSystem", ref)

    def _vm(self, ref: str) -> Any:
        return managed_object(self._session, "vim.VirtualMachine", ref)

    def _explained(self, target: str, action: str, call: Callable[[], T]) -> T:
        try:
            return call()
        except (vmodl.MethodFault, vim.fault.VimFault) as fault:
            raise translate(fault, target, action) from fault

    def _property(self, found: Any, path: str) -> Any:
        rows = self._session.read(lambda: list(collect_objects(self._session, [found], {type(found): [path]})))
        return rows[0][1].get(path) if rows else None

    def _awaited(self, found: Any, path: str) -> Any:
        """Return a property that is waited for; None while vCenter's answer cannot be used, until the next one."""
        try:
            return self._property(found, path)
        except VSphereError as error:
            if error.code != UNEXPECTED:
                raise
            return None

    def _connection(self, host: Any) -> str:
        """Return the state of a host's connection; empty while it is not known."""
        return str(self._awaited(host, "runtime.connectionState") or "")

    def _write(self, found: Any, attribute: str, text: str, target: str) -> None:
        """Write a custom attribute, and read it back: what the next run depends on must be there whole."""
        with self._attributes:
            self._session.read(lambda: self._fields.set(found, attribute, text))  # twice is as once
            seen = self._fields.value(self._property(found, "customValue"), attribute)
        if (seen or "") != text:
            raise VSphereError(
                f"vCenter did not keep what was written down on {target}",
                code="ats.record-lost",
                target=target,
                hint=f"see its custom attribute `{attribute}` in vCenter; nothing was changed after this",
            )

    def _task(self, begin: Callable[[], Any], until: float, notify: OnProgress) -> None:
        """Begin a task and wait for its end; its error is raised. One that does not end in time is cancelled."""
        task = self._session.write(begin)
        while True:
            state = self._state(task)
            if state == "success":
                return
            if state == "error":
                raise self._property(task, "info.error") or vmodl.MethodFault(msg="vCenter does not say why")
            if time.monotonic() >= until:
                break
            self._wait(notify, state)
        self._session.write(task.CancelTask)
        raise VSphereError("it has not ended in time, and was cancelled", code="task.timeout")

    def _state(self, task: Any) -> str:
        """Return a task's state; InterruptedWriteError when nobody can say what becomes of it."""
        try:
            return str(self._property(task, "info.state"))
        except VSphereError as error:
            raise InterruptedWriteError(
                f"{error.message}; whether the change happens is not known",
                code="vcenter.interrupted",
                target=error.target,
                hint="run the same command again: it looks first and finishes what is missing",
            ) from error

    def _wait(self, notify: OnProgress, words: str) -> None:
        notify(words)
        time.sleep(self._pause_s)

    def _enter(self, host: Any, until: float, notify: OnProgress) -> None:
        left = max(1, int(until - time.monotonic()))
        try:
            self._task(
                lambda: host.EnterMaintenanceMode_Task(timeout=left, evacuatePoweredOffVms=False),
                until + GRACE_S,
                notify,
            )
        except vim.fault.InvalidState:
            if not self._property(host, "runtime.inMaintenanceMode"):
                raise

    def _exit(self, host: Any, until: float, notify: OnProgress) -> None:
        try:
            left = max(1, int(until - time.monotonic()))
            self._task(lambda: host.ExitMaintenanceMode_Task(timeout=left), until + GRACE_S, notify)
        except vim.fault.InvalidState:
            if self._property(host, "runtime.inMaintenanceMode"):
                raise

    def _reboot(self, change: Reboot, host: Any, until: float, notify: OnProgress) -> None:
        """Reboot a host and wait until it is back; it may go down though the answer to the call was lost."""
        try:
            self._task(lambda: host.RebootHost_Task(force=False), until, notify)
        except InterruptedWriteError:
            if not self._goes_down(host, change.boot_time, min(until, time.monotonic() + GRACE_S), notify):
                raise
        self._await(host, change.host_name, change.boot_time, until, notify)

    def _goes_down(self, host: Any, boot_time: str | None, until: float, notify: OnProgress) -> bool:
        """Return whether a host goes down in time, or has been down already."""
        while self._connection(host) in {"connected", ""}:
            booted = self._awaited(host, "runtime.bootTime")
            if booted is not None and boot_time is not None and booted.isoformat() != boot_time:
                return True
            if time.monotonic() >= until:
                return False
            self._wait(notify, "going down")
        return True

    def _await(self, host: Any, name: str, boot_time: str | None, until: float, notify: OnProgress) -> None:
        """Wait until the host answers vCenter, with another boot time when one is given."""
        gone = boot_time is None
        while True:
            state = self._connection(host)
            booted = self._awaited(host, "runtime.bootTime")
            gone = gone or state not in {"connected", ""}
            again = booted is not None and booted.isoformat() != boot_time
            # A host without a boot time has booted when it was away.
            if state == "connected" and (gone if boot_time is None or booted is None else again):
                return
            if time.monotonic() >= until:
                raise _not_back(name, state, boot_time is not None and not gone)
            self._wait(notify, "rebooting" if gone else "going down")

    def _shut_down(self, change: ShutDown, until: float, notify: OnProgress) -> None:
        vm = self._vm(change.vm)
        asked, tools_until = False, min(until, time.monotonic() + TOOLS_S)
        while not self._is(vm, "poweredOff"):
            asked = asked or self._ask_to_shut_down(vm)
            if time.monotonic() >= (until if asked else tools_until):
                break
            # A guest that boots has no tools yet; as soon as it has, it is asked.
            self._wait(notify, f"{change.vm_name} shuts down" if asked else f"{change.vm_name} has no VMware Tools yet")
        if self._is(vm, "poweredOff"):
            return
        if not change.hard:
            raise _stays_on(change.vm_name, asked=asked)
        self._task(vm.PowerOffVM_Task, time.monotonic() + GRACE_S, notify)

    def _ask_to_shut_down(self, vm: Any) -> bool:
        """Ask the guest to shut down; false when VMware Tools do not run in it."""
        try:
            self._session.write(vm.ShutdownGuest)
        except vim.fault.ToolsUnavailable:
            return False
        except vim.fault.InvalidPowerState:  # it has just gone off
            return True
        return True

    def _power_on(self, change: PowerOnAgain, host: Any, until: float, notify: OnProgress) -> None:
        vm = self._vm(change.vm)
        try:
            if not self._is(vm, "poweredOn"):
                self._task(lambda: vm.PowerOnVM_Task(host=host), until, notify)
        except vim.fault.InvalidPowerState as fault:
            if str(fault.existingState) != "poweredOn":
                raise
        self._write(vm, RESUME_ATTRIBUTE, "", change.vm_name)

    def _is(self, vm: Any, state: str) -> bool:
        return str(self._property(vm, "runtime.powerState")) == state


def _not_back(name: str, state: str, never_left: bool) -> VSphereError:  # noqa: FBT001 - one of two sentences
    seen = "it has not gone down yet" if never_left else f"vCenter sees it as {state}"
    return VSphereError(
        f"{name} has not come back in time; last seen: {seen}",
        code="host.reboot-timeout",
        target=name,
        hint="look at the host's console; when it is back, run the same command again: it goes on from there",
    )


def _stays_on(name: str, *, asked: bool) -> VSphereError:
    why = "its guest was asked to shut down, and runs on" if asked else "VMware Tools cannot shut its guest down"
    return VSphereError(
        f"{name} is still powered on: {why}",
        code="ats.vm-stays-on",
        target=name,
        hint="shut it down by hand, or add --allow-power-off",
    )
