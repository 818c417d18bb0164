"""ATS_ENABLED in a NIC's firmware: read and set through the host's shell, or the guest's that has the function."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import GuestError, VsmlError, VSphereError
from vsphere_ml.core.hosts.ats_facts import FirmwareSeen
from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.core.model.host_settings import FIRMWARE_SETTING, FUNCTIONS_SETTING, SRIOV_SETTING, AccessMethod
from vsphere_ml.core.ports.esxi import see_one
from vsphere_ml.core.tools import mft
from vsphere_ml.flows.guests.visit import run_with_retry
from vsphere_ml.flows.hosts.host_shell import COMMAND_S
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vsphere_ml.core.hosts.ats_settings import HostSettings, PortSettings
    from vsphere_ml.core.hosts.host_changes import SetFirmware
    from vsphere_ml.core.model.esxi_state import EsxiHostState
    from vsphere_ml.core.model.guest import Shell
    from vsphere_ml.core.model.inventory import PciAddress
    from vsphere_ml.core.ports.vcenter import GuestPlace
    from vsphere_ml.flows.hosts.host_session import HostSession
    from vsphere_ml.flows.hosts.host_shell import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class FirmwareAccess:
    """The ways to NIC firmware that the cluster file opens; None where it opens none."""

    session: HostSession
    places: Mapping[str, GuestPlace | VsmlError]  # of the guests, by node
    wait_s: float = 0.0  # for guests that boot

    def read(self, settings: HostSettings, state: EsxiHostState) -> dict[PciAddress, FirmwareSeen]:
        """Return what each port's firmware answers, or why it could not be asked. Raises no error of the access."""
        seen = {port.address: self._in_guest(port) for port in settings.ports if port.guest}
        ports = [port for port in settings.ports if not port.guest]
        return seen | (self._on_host(ports, state) if ports else {})

    def set(self, change: SetFirmware) -> None:
        """Configure a port's firmware for the next boot, and read it back. VSphereError when it refuses."""
        if change.access is AccessMethod.GUEST:
            self._set_in_guest(change)
            return
        state = see_one(self.session.hosts, change.host, change.host_name)
        with self.session.open_shell(state) as run:
            _set(run, change, mft.setting(change.device, change.value), mft.query(change.device))

    def _on_host(self, ports: Sequence[PortSettings], state: EsxiHostState) -> dict[PciAddress, FirmwareSeen]:
        seen = self.session.ask_shell(state, lambda run: _read(run, ports))
        if isinstance(seen, str):
            return {port.address: FirmwareSeen(access=AccessMethod.NONE, why=seen) for port in ports}
        return seen

    def _in_guest(self, port: PortSettings) -> FirmwareSeen:
        guests, place = self.session.guests, self.places.get(port.guest)
        if guests is None or place is None or isinstance(place, VsmlError):
            why = place.message if isinstance(place, VsmlError) else f"{port.guest} cannot be entered"
            return FirmwareSeen(access=AccessMethod.NONE, why=why, guest=port.guest)
        outcome = run_with_retry(guests, [place], lambda shell: _read_in_guest(shell, port), self.wait_s)[place.name]
        if isinstance(outcome, VsmlError):
            return FirmwareSeen(access=AccessMethod.NONE, why=outcome.message, guest=port.guest)
        return outcome

    def _set_in_guest(self, change: SetFirmware) -> None:
        guests, place = self.session.guests, self.places.get(change.guest)
        if guests is None or place is None or isinstance(place, VsmlError):
            raise AssertionError("a guest that cannot be entered was not read either")
        commands = mft.guest_setting(change.device, change.value), mft.guest_query(change.device)
        outcome = guests.each([place], lambda shell: _set(_runner_of_guest(shell), change, *commands))[place.name]
        if isinstance(outcome, VsmlError):
            raise outcome


def _read(run: Run, ports: Sequence[PortSettings]) -> dict[PciAddress, FirmwareSeen]:
    status = run(mft.MST_STATUS)
    if mft.is_missing(status):
        why = f"NVIDIA's firmware tools (MFT) are not installed: there is no {mft.ESXI_FOLDER}/mst"
        return {port.address: FirmwareSeen(access=AccessMethod.NONE, why=why, installed=False) for port in ports}
    if not mft.devices(status.out):
        run(mft.MST_START)
        status = run(mft.MST_STATUS)
    listed = mft.devices(status.out)
    return {port.address: _read_port(run, port, listed) for port in ports}


def _read_port(run: Run, port: PortSettings, listed: Sequence[mft.MstDevice]) -> FirmwareSeen:
    device = mft.device_at(listed, port.address, port.uplink)
    if device is None:
        return FirmwareSeen(access=AccessMethod.NONE, why=f"`mst status -vv` lists no device at {port.address}")
    return _parse_query(run(mft.query(device.name)), FirmwareSeen(access=AccessMethod.HOST, device=device.name))


def _parse_query(answer: CommandAnswer, seen: FirmwareSeen) -> FirmwareSeen:
    """Return what a query answered."""
    why, value, installed = "", None, True
    if mft.is_missing(answer):
        why, installed = "mlxconfig is not installed", False
    elif not answer.ok:
        why = f"mlxconfig: {mft.words(answer)}"
    else:
        value = mft.value(answer.out)
        why = "" if value else f"mlxconfig lists no {FIRMWARE_SETTING}: this firmware, or this mlxconfig, has none"
    method = seen.access if value else AccessMethod.NONE
    return replace(
        seen,
        access=method,
        value=value,
        why=why,
        installed=installed,
        sriov=mft.number(answer.out, SRIOV_SETTING),
        functions=mft.number(answer.out, FUNCTIONS_SETTING),
    )


def _read_in_guest(shell: Shell, port: PortSettings) -> FirmwareSeen:
    run = _runner_of_shell(shell)
    found = mft.guest_ports(run(mft.GUEST_PORTS).out)
    if len(found) != 1:
        # Which of several a host's port is, no guest knows: their addresses are the VM's own.
        why = f"{port.guest} has {len(found)} whole ConnectX functions; only with one is it plain which is meant"
        return FirmwareSeen(access=AccessMethod.NONE, why=why, guest=port.guest)
    seen = FirmwareSeen(access=AccessMethod.GUEST, device=found[0], guest=port.guest)
    return _parse_query(run(mft.guest_query(found[0])), seen)


def _runner_of_shell(shell: Shell) -> Run:
    return lambda command: shell.ask({"it": command})["it"]


def _runner_of_guest(shell: Shell) -> Run:
    def run(command: str) -> CommandAnswer:
        try:
            return shell.run(command, timeout_s=COMMAND_S)
        except GuestError as error:
            if error.code != "guest.command-failed":
                raise
            return CommandAnswer(1, "", "\n".join(error.details) or error.message)

    return run


def _set(run: Run, change: SetFirmware, setting: str, query: str) -> None:
    """Set, and believe it only when the next boot's value says so."""
    answer = run(setting)
    if not answer.ok:
        raise _firmware_error(change, mft.words(answer), setting)
    value = mft.value(run(query).out)
    if value is None or bool(value.next_boot) is not change.value:
        raise _firmware_error(change, "it took the setting, and shows another one when asked again", query)


def _firmware_error(change: SetFirmware, why: str, command: str) -> VSphereError:
    return VSphereError(
        f"{change.host_name}: the firmware of {change.port} ({change.device}) refuses "
        f"{FIRMWARE_SETTING}={change.value}: {why}",
        code="ats.refused",
        target=change.host_name,
        hint=f"{'in ' + change.guest if change.guest else 'on the host'}: {command}",
    )
