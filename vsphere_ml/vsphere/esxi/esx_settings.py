"""Writes a host's settings over the vSphere API, and reads each back: what was taken is not always kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyVmomi import vim

from vsphere_ml.core.errors import VSphereError
from vsphere_ml.core.hosts.host_changes import SetFunctions
from vsphere_ml.core.model.host_settings import KERNEL_OPTION, KERNEL_SETTING, TRUE, AccessMethod
from vsphere_ml.core.tools import roce
from vsphere_ml.vsphere.esxi import esxcli, esxi_state, modules, pvrdma
from vsphere_ml.vsphere.esxi.esxcli import EsxcliError
from vsphere_ml.vsphere.inventory.collect import collect_objects, reference
from vsphere_ml.vsphere.inventory.pci import address

if TYPE_CHECKING:
    from vsphere_ml.core.hosts.host_changes import (
        SetDriver,
        SetFirewall,
        SetGraphics,
        SetKernel,
        SetPassthrough,
        SetVmknic,
    )
    from vsphere_ml.vsphere.connection.session import Session
    from vsphere_ml.vsphere.inventory.collect import Row

_PERFORMANCE = "performance"


class EsxiSettings:
    """The settings of hosts, each written for the next boot."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def kernel(self, host: Any, change: SetKernel) -> None:
        options = self._read(host, "configManager.advancedOption")
        if change.access is AccessMethod.OPTIONS:
            options = self._require(host, "configManager.advancedOption")
            value = vim.option.OptionValue(key=KERNEL_OPTION, value=change.value == TRUE)
            self._session.write(lambda: options.UpdateOptions([value]))
        else:
            self._esxcli(host, change)
        seen = esxi_state.kernel(self._session, host, options).configured
        if seen != change.value:
            raise _not_saved(change.host_name, f"kernel setting {KERNEL_SETTING}", change.value, seen)

    def _esxcli(self, host: Any, change: SetKernel) -> None:
        try:
            esxcli.run(self._session, host, "system.settings.kernel.set", setting=KERNEL_SETTING, value=change.value)
        except EsxcliError as error:
            raise VSphereError(
                f"{change.host_name} refuses kernel setting {KERNEL_SETTING}: {error}",
                code="ats.refused",
                target=change.host_name,
                hint=f"on the host: esxcli system settings kernel set -s {KERNEL_SETTING} -v {change.value}",
            ) from error

    def graphics(self, host: Any, change: SetGraphics) -> None:
        manager, config = self._read(host, "configManager.graphicsManager"), self._read(host, "config.graphicsConfig")
        if manager is None or config is None:
            raise VSphereError(
                f"{change.host_name} has no graphics manager", code="vsphere.not-supported", target=change.host_name
            )
        wanted = dict(change.gpus)
        for each in config.deviceType or ():
            each.graphicsType = wanted.get(address(each.deviceId), each.graphicsType)
        config.hostDefaultGraphicsType = change.value
        config.sharedPassthruAssignmentPolicy = config.sharedPassthruAssignmentPolicy or _PERFORMANCE
        self._session.write(lambda: manager.UpdateGraphicsConfig(config))
        seen = self._require(host, "config.graphicsConfig").hostDefaultGraphicsType
        if seen != change.value:
            raise _not_saved(change.host_name, "the default graphics type", change.value, seen)

    def function(self, host: Any, change: SetFunctions | SetPassthrough) -> None:
        system = self._read(host, "configManager.pciPassthruSystem")
        infos = {address(each.id): each for each in self._read(host, "config.pciPassthruInfo") or ()}
        if system is None or change.port not in infos:
            raise VSphereError(
                f"{change.host_name} has no function {change.port} to hand out",
                code="vsphere.not-found",
                target=change.host_name,
            )
        wanted = _function(change, infos[change.port].id)
        self._session.write(lambda: system.UpdatePassthruConfig([wanted]))

    def driver(self, host: Any, change: SetDriver) -> None:
        """Set parameters in the string as it is now: another setting of this run may have changed it since the look."""
        system, keys = self._require(host, modules.PATH), dict(change.keys)
        before = self._options(system, change.module)
        self._session.write(lambda: system.UpdateModuleOptionString(change.module, roce.merge_options(before, keys)))
        if missing := ", ".join(roce.differing_options(self._options(system, change.module), keys)):
            raise _not_saved(change.host_name, f"options of {change.module}", roce.merge_options(before, keys), missing)

    def _options(self, system: Any, module: str) -> str:
        return str(self._session.read(lambda: system.QueryConfiguredModuleOptionString(module)) or "")

    def vmknic(self, host: Any, change: SetVmknic) -> None:
        options = self._require(host, "configManager.advancedOption")
        value = vim.option.OptionValue(key=pvrdma.OPTION, value=change.value)
        self._session.write(lambda: options.UpdateOptions([value]))
        seen = self._session.read(lambda: options.QueryOptions(pvrdma.OPTION))
        if [str(each.value) for each in seen or ()] != [change.value]:
            raise _not_saved(change.host_name, pvrdma.OPTION, change.value, str(seen[0].value) if seen else None)

    def firewall(self, host: Any, change: SetFirewall) -> None:
        system = self._require(host, "configManager.firewallSystem")
        call = system.EnableRuleset if change.value else system.DisableRuleset
        self._session.write(lambda: call(id=pvrdma.RULESET))

    def ssh(self, host: Any, *, run: bool) -> None:
        services = self._read(host, "configManager.serviceSystem")
        if services is None:
            raise VSphereError("the host offers no control of its services", code="vsphere.not-supported")
        call = services.StartService if run else services.StopService
        self._session.write(lambda: call(id=esxi_state.SSH_SERVICE))

    def _read(self, host: Any, path: str) -> Any:
        rows = self._rows(host, path)
        return rows[0][1].get(path) if rows else None

    def _require(self, host: Any, path: str) -> Any:
        """Return a property; VSphereError `vsphere.not-found` or `vcenter.no-property` when there is none."""
        rows = self._rows(host, path)
        if not rows:
            raise VSphereError("the host is gone", code="vsphere.not-found", target=reference(host))
        return rows[0][1][path]

    def _rows(self, host: Any, path: str) -> list[Row]:
        return self._session.read(lambda: list(collect_objects(self._session, [host], {vim.HostSystem: [path]})))


def _function(change: SetFunctions | SetPassthrough, host_id: str) -> Any:
    """Return the function's configuration; applied at once only where no reboot follows that does it.

    With `applyNow` unset the host decides by its deviceRebindWithoutRebootSupported (vSphere API reference, since 7.0).
    """
    made: Any = vim.host
    if isinstance(change, SetFunctions):
        on = change.count > 0
        return made.SriovConfig(
            id=host_id, passthruEnabled=False, applyNow=False, sriovEnabled=on, numVirtualFunction=change.count
        )
    return made.PciPassthruConfig(id=host_id, passthruEnabled=change.value, applyNow=None if change.at_once else False)


def _not_saved(host: str, what: str, wanted: str, seen: str | None) -> VSphereError:
    return VSphereError(
        f"{host} took {what} = {wanted}, and says {seen or 'nothing'} when asked again",
        code="host.setting-not-saved",
        target=host,
        hint="see the host's recent tasks and its lockdown mode; a host profile may set it back",
    )
