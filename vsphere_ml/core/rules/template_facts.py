"""What vCenter knows of a template that nodes are to be clones of, and what nobody knows before it boots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.catalog.versions import functions_hardware
from vsphere_ml.core.diagnostics import Diagnostic, Severity
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.model.spec import FirstBootBy, HostKeys
from vsphere_ml.core.rules.clone_source import check_clone_source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.model.inventory import Vm
    from vsphere_ml.core.model.spec import ClusterSpec

_SILENT = "isolation.tools.setinfo.disable"  # keeps guests from telling vCenter anything (vSphere hardening guides)


def template_facts(source: Vm, spec: ClusterSpec) -> tuple[Diagnostic, ...]:
    """Return what is known of the source of a spec's nodes, all of it, whether or not it can be used."""
    return tuple(_facts(source, spec))


def _facts(source: Vm, spec: ClusterSpec) -> Iterator[Diagnostic]:
    yield _clone(source, spec)
    yield _hardware(source, spec)
    yield _tools(source, spec)
    yield _guest_info(source, spec)
    yield from _is_inside(spec)


def _clone(source: Vm, spec: ClusterSpec) -> Diagnostic:
    """Return whether it can be cloned for these nodes: EFI, its system, a snapshot for linked clones."""
    name = "firmware, guest and snapshot"
    settings = source.settings
    observed = f"{settings.firmware}, {settings.guest_id or 'no guest'}" if settings is not None else "not read"
    try:
        check_clone_source(source, spec)
    except NotPossible as refusal:
        return Diagnostic(target=name, severity=Severity.ERROR, message=refusal.message, hint=refusal.hint)
    return Diagnostic(target=name, severity=Severity.OK, message=observed)


def _hardware(source: Vm, spec: ClusterSpec) -> Diagnostic:
    wanted = max(node.hardware_version or functions_hardware(node.functions) for node in spec.nodes)
    upgrade = f", clones are upgraded to {wanted}" if source.hardware_version < wanted else ""
    observed = f"{source.hardware_version}{upgrade}"
    return Diagnostic(target="hardware version", severity=Severity.OK, message=observed)


def _tools(source: Vm, spec: ClusterSpec) -> Diagnostic:
    """Return whether VMware Tools have run in it: addresses, and data for a first boot, come by them."""
    name = "VMware Tools"
    if source.settings is not None and source.settings.tools_version:
        return Diagnostic(target=name, severity=Severity.OK, message=f"version {source.settings.tools_version}")
    needed = spec.guest.first_boot is FirstBootBy.CUSTOMIZATION
    return Diagnostic(
        target=name,
        severity=Severity.ERROR if needed else Severity.UNKNOWN,
        message="vCenter has seen none run in it",
        hint="in the template: `apt-get install open-vm-tools`, or `vmware-toolbox-cmd -v` where it is there",
    )


def _guest_info(source: Vm, spec: ClusterSpec) -> Diagnostic:
    keys = source.settings.extra_config if source.settings is not None else {}
    name = "guests may tell vCenter"
    if keys.get(_SILENT, "").upper() != "TRUE":
        return Diagnostic(target=name, severity=Severity.OK, message=f"{_SILENT} is not set")
    published = spec.guest.host_keys is HostKeys.PUBLISHED
    return Diagnostic(
        target=name,
        severity=Severity.ERROR if published else Severity.OK,
        message=f"{_SILENT} is TRUE: no guest publishes its address or its SSH host key",
        hint=f"`govc vm.change -vm {source.name} -e {_SILENT}=FALSE`, or [guest] host_keys with fingerprints",
    )


def _is_inside(spec: ClusterSpec) -> Iterator[Diagnostic]:
    """Yield what is inside its disk, each with the command that shows it when it runs."""
    asked = [("root file system that grows", "growpart --dry-run DISK PARTITION; lsblk")]
    if spec.guest.first_boot is FirstBootBy.CLOUD_INIT:
        asked.insert(0, ("cloud-init's VMware datasource", "cloud-id; cloud-init query v1.platform"))
    if spec.guest.playbooks:
        asked.append(("kernel headers", "ls -d /lib/modules/$(uname -r)/build"))
    for name, command in asked:
        yield Diagnostic(target=name, severity=Severity.UNKNOWN, message="-", hint=f"in a clone of it: `{command}`")
