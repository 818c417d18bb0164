"""Reads what matters to a host's ATS: kernel setting, graphics, functions, its VMs, and what we wrote down there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyVmomi import vim, vmodl

from vsphere_ml.core.model.esxi_state import (
    NO_LOCKDOWN,
    DesiredState,
    EsxiHostState,
    FunctionSeen,
    GraphicsSeen,
    HostConnection,
    KernelOption,
    VmOnHost,
)
from vsphere_ml.core.model.host_settings import KERNEL_OPTION, KERNEL_SETTING, AccessMethod
from vsphere_ml.core.model.inventory import HostRef, VmRef
from vsphere_ml.core.model.marks import HOST_RECORD_ATTRIBUTE, RESUME_ATTRIBUTE
from vsphere_ml.lazy_dataclass import dataclass
from vsphere_ml.vsphere.esxi import esxcli, lockdown, modules, pvrdma
from vsphere_ml.vsphere.esxi.drs import read_drs, tie
from vsphere_ml.vsphere.esxi.esxcli import EsxcliError
from vsphere_ml.vsphere.faults import AWAY
from vsphere_ml.vsphere.inventory import hosts
from vsphere_ml.vsphere.inventory.collect import collect_objects, reference
from vsphere_ml.vsphere.inventory.pci import address
from vsphere_ml.vsphere.inventory.vms import is_agent

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from vsphere_ml.core.model.esxi_state import Automation
    from vsphere_ml.vsphere.connection.session import Session
    from vsphere_ml.vsphere.esxi.drs import ClusterDrs
    from vsphere_ml.vsphere.inventory.custom_attributes import CustomAttributes

HOST = (
    "name",
    "config.product.version",
    "config.product.build",
    "summary.hardware.cpuModel",
    "runtime.connectionState",
    "runtime.inMaintenanceMode",
    "runtime.bootTime",
    "config.graphicsConfig",
    "config.graphicsInfo",
    "config.pciPassthruInfo",
    "config.service",
    "capability.deviceRebindWithoutRebootSupported",
    *pvrdma.PATHS,
    modules.PATH,
    "complianceCheckResult",
    *lockdown.PATHS,
    "customValue",
    "parent",
    "vm",
)
VM = (
    "name",
    "runtime.powerState",
    "config.managedBy",
    "config.template",
    "config.hardware.device",
    "guest.toolsRunningStatus",
    "guest.ipAddress",
    "guest.hostName",
    "guest.net",
    "customValue",
)
SSH_SERVICE = "TSM-SSH"


def see(session: Session, fields: CustomAttributes, found: Iterable[Any]) -> dict[HostRef, EsxiHostState]:
    """Return these hosts as they are now."""
    rows = list(collect_objects(session, found, {vim.HostSystem: HOST}))
    vms = [vm for _, props in rows for vm in props.get("vm") or ()]
    related = _Related(
        vms={reference(vm): props for vm, props in collect_objects(session, vms, {vim.VirtualMachine: VM})},
        drs=read_drs(session, [props["parent"] for _, props in rows if "parent" in props]),
    )
    return {HostRef(reference(host)): _read_state(session, fields, host, props, related) for host, props in rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Related:
    """What was read with the hosts: properties of their VMs, and DRS of their clusters, by ids."""

    vms: Mapping[str, Mapping[str, Any]]
    drs: Mapping[str, ClusterDrs]


def _read_state(
    session: Session,
    fields: CustomAttributes,
    host: Any,
    props: Mapping[str, Any],
    related: _Related,
) -> EsxiHostState:
    """Return a host as it is; one that does not answer counts as that, whatever vCenter shows it as."""
    try:
        return _host_state(session, fields, host, props, related)
    except AWAY:
        return _host_state(
            session, fields, host, {**props, "runtime.connectionState": HostConnection.NOT_RESPONDING}, related
        )


def _host_state(
    session: Session,
    fields: CustomAttributes,
    host: Any,
    props: Mapping[str, Any],
    related: _Related,
) -> EsxiHostState:
    connection = HostConnection(str(props.get("runtime.connectionState") or HostConnection.DISCONNECTED))
    booted = props.get("runtime.bootTime")
    there = [VmRef(reference(vm)) for vm in props.get("vm") or () if reference(vm) in related.vms]
    drs = related.drs.get(reference(props["parent"])) if "parent" in props else None
    special = drs.own if drs else {}
    vms = [
        _vm(ref, each, fields, special.get(ref))
        for ref in there
        if not (each := related.vms[ref]).get("config.template")
    ]
    return EsxiHostState(
        ref=HostRef(reference(host)),
        name=props.get("name", ""),
        version=props.get("config.product.version") or "",
        build=props.get("config.product.build") or "",
        cpu_vendor=hosts.cpu_vendor(props.get("summary.hardware.cpuModel") or ""),
        connection=connection,
        maintenance=bool(props.get("runtime.inMaintenanceMode")),
        boot_time=booted.isoformat() if booted is not None else "",
        kernel=kernel(session, host, props.get("configManager.advancedOption"))
        if connection is HostConnection.CONNECTED
        else KernelOption(access=AccessMethod.NONE, why="the host does not answer"),
        graphics=_graphics(props),
        functions={address(info.id): _function(info) for info in props.get("config.pciPassthruInfo") or ()},
        vms=tuple(sorted(vms, key=lambda vm: (vm.name, vm.ref))),
        rebinds=bool(props.get("capability.deviceRebindWithoutRebootSupported")),
        drivers=modules.options(props.get(modules.PATH)) if connection is HostConnection.CONNECTED else None,
        pvrdma=pvrdma.pvrdma(props) if connection is HostConnection.CONNECTED else None,
        ssh_running=_ssh(props.get("config.service")),
        record=fields.value(props.get("customValue"), HOST_RECORD_ATTRIBUTE) or "",
        drs=drs.state if drs else None,
        desired=_desired_state(drs, host, props),
        lockdown=lockdown.read_lockdown(session, props) if connection is HostConnection.CONNECTED else NO_LOCKDOWN,
    )


def kernel(session: Session, host: Any, options: Any) -> KernelOption:
    """Return the kernel setting as esxcli has it, else as the host's option manager does."""
    try:
        rows = esxcli.run(session, host, "system.settings.kernel.list", option=KERNEL_SETTING)
    except EsxcliError as error:
        return KernelOption(access=AccessMethod.NONE, why=f"esxcli: {error}")
    except (vmodl.MethodFault, vim.fault.VimFault) as fault:
        return _from_options(session, options, type(fault).__name__.rpartition(".")[2])
    row = next((each for each in rows if each.get("Name") == KERNEL_SETTING), None)
    if row is None:
        return KernelOption(access=AccessMethod.NONE, why="esxcli lists no such setting")
    return KernelOption(
        access=AccessMethod.ESXCLI, configured=row.get("Configured", "").upper(), runtime=row.get("Runtime", "").upper()
    )


def _from_options(session: Session, options: Any, why: str) -> KernelOption:
    text = f"esxcli over the API is refused ({why})"
    try:
        found = session.read(lambda: options.QueryOptions(KERNEL_OPTION)) if options is not None else ()
    except (vmodl.MethodFault, vim.fault.VimFault):  # InvalidName: this ESXi does not have it there
        found = ()
    if not found:
        return KernelOption(access=AccessMethod.NONE, why=f"{text}, and the option manager has no {KERNEL_OPTION}")
    return KernelOption(access=AccessMethod.OPTIONS, configured=str(found[0].value).upper())


def _graphics(props: Mapping[str, Any]) -> GraphicsSeen:
    config = props.get("config.graphicsConfig")
    infos = props.get("config.graphicsInfo") or ()
    # A console's adapter and a GPU that is handed over whole (`direct`) give no vGPUs, whatever is configured.
    gpus: dict[str, str] = {
        address(info.pciId): info.graphicsType for info in infos if info.graphicsType not in {"basic", "direct"}
    }
    devices: dict[str, str] = {
        address(each.deviceId): each.graphicsType for each in getattr(config, "deviceType", None) or ()
    }
    return GraphicsSeen(
        default=config.hostDefaultGraphicsType if config is not None else None,
        devices={gpu: kind for gpu, kind in devices.items() if gpu in gpus and kind},
        now=gpus,
    )


def _function(info: Any) -> FunctionSeen:
    sriov = isinstance(info, vim.host.SriovInfo)
    return FunctionSeen(
        passthrough=bool(info.passthruEnabled),
        passthrough_now=bool(info.passthruActive),
        vfs=int(info.numVirtualFunctionRequested or 0) if sriov and info.sriovEnabled else 0,
        vfs_now=int(info.numVirtualFunction or 0) if sriov and info.sriovActive else 0,
    )


def _desired_state(drs: ClusterDrs | None, host: Any, props: Mapping[str, Any]) -> DesiredState:
    """Return what decides on a host, and in what it differs from that, as far as the last checks show."""
    found = drs.desired if drs else DesiredState()
    checked = props.get("complianceCheckResult")
    if drs is not None and reference(host) in drs.other_software:
        found = replace(found, image_differs=True)
    if checked is None or checked.profile is None:
        return found
    differs = checked.complianceStatus == vim.profile.ComplianceResult.Status.nonCompliant
    texts = [each.message.message or each.message.key for each in checked.failure or ()]
    return replace(found, profile=True, profile_differs=tuple(texts or ["it does not say in what"]) if differs else ())


def _ssh(services: Any) -> bool | None:
    known = getattr(services, "service", None) or ()
    return next((bool(each.running) for each in known if each.key == SSH_SERVICE), None)


def _vm(ref: VmRef, props: Mapping[str, Any], fields: CustomAttributes, automation: Automation | None) -> VmOnHost:
    values = props.get("customValue")
    nets = [str(ip) for net in props.get("guest.net") or () for ip in net.ipAddress or ()]
    answers = {props.get("guest.ipAddress"), props.get("guest.hostName"), *nets}
    return VmOnHost(
        ref=ref,
        name=props.get("name", ""),
        on=props.get("runtime.powerState") == "poweredOn",
        cluster_mark=fields.owner(values),
        resume=fields.value(values, RESUME_ATTRIBUTE) or None,
        agent=is_agent(props.get("config.managedBy")),
        tools=props.get("guest.toolsRunningStatus") == "guestToolsRunning",
        addresses=frozenset(str(each).lower() for each in answers if each),
        tie=tie(props.get("config.hardware.device") or ()),
        automation=automation,
    )
