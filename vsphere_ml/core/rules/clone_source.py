"""Whether nodes can be clones of a source as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.model.spec import CloneKind
from vsphere_ml.core.rules import check

if TYPE_CHECKING:
    from vsphere_ml.core.model.inventory import Vm
    from vsphere_ml.core.model.spec import ClusterSpec


def check_clone_source(source: Vm, spec: ClusterSpec) -> None:
    """Raise NotPossible, with what would do instead, when nodes cannot be clones of this source.

    Codes: `source.no-snapshot`, `source.linked-disk`, `source.not-efi`, `source.guest`.
    """
    if spec.source.clone is CloneKind.LINKED and source.snapshot is None:
        raise NotPossible(
            f"`{source.name}` has no snapshot, and a linked clone starts from one",
            code="source.no-snapshot",
            target=source.name,
            hint=f'`govc snapshot.create -vm {source.name} base`, or set source.clone = "full"',
        )
    if spec.source.clone is CloneKind.LINKED:
        _refuse_growth(source, spec)
    if source.settings is not None:
        check_firmware(source.name, source.settings.firmware)
    _refuse_guest(source, spec)


def check_firmware(name: str, firmware: str) -> None:
    """Raise NotPossible `source.not-efi` unless a source boots by EFI."""
    if firmware != "efi":
        raise NotPossible(
            f"`{name}` boots by {firmware.upper()}; a vGPU needs a guest installed in EFI mode (rule efi-and-mmio)",
            code="source.not-efi",
            target=name,
            hint="set [source] to a template or package of a guest that was installed with EFI firmware",
        )


def _refuse_growth(source: Vm, spec: ClusterSpec) -> None:
    """A linked clone's disk is a difference to its parent's, and vSphere does not extend such a disk."""
    there = source.settings.disk if source.settings is not None else None
    larger = [node for node in spec.nodes if node.disk is not None and there is not None and node.disk > there]
    if larger:
        raise NotPossible(
            f"a linked clone keeps the size of its parent's disk, which is {there}; {larger[0].disk} wanted",
            code="source.linked-disk",
            target=larger[0].name,
            hint='leave out nodes.disk, or set source.clone = "full"',
        )


def _refuse_guest(source: Vm, spec: ClusterSpec) -> None:
    broken = check.of_source(source, spec)
    if broken:
        raise NotPossible(
            f"`{source.name}`: {broken[0].message}",
            code="source.guest",
            target=source.name,
            details=tuple(f"{each} (rule {each.code})" for each in broken),
            hint=f"set source.template to a template of another guest; `vsml rules why {broken[0].code}`",
        )
