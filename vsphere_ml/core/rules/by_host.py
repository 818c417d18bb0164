"""What a host decides: reasons why it cannot take a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.catalog.versions import numbers
from vsphere_ml.core.rules.reasons import Reason, RejectReason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.model.inventory import Host
    from vsphere_ml.core.nodes.requirements import NodeRequirements

# ESXi from this version on gives a VM so many PCI functions.
_FUNCTIONS = (((8, 0, 2), 128), ((8, 0, 1), 64), ((8, 0), 32), ((7, 0), 16))
_PAIR = 2
_NVSWITCH = {"A": ((8, 0, 1), "8.0.1"), "H": ((8, 0, 2), "8.0.2")}  # by the board's first letter: Ampere, Hopper
_MOST_GPUS = 4  # of a server in which dynamic DirectPath gives a VM several


def many_functions(host: Host, requirements: NodeRequirements) -> Iterator[Reason]:
    if not requirements.kind.spec.is_passthrough:
        return
    wanted = requirements.gpus + (requirements.nics if requirements.nic.spec.function else 0)
    most = next((most for since, most in _FUNCTIONS if numbers(host.version) >= since), 0)
    if wanted > most:
        yield Reason(RejectReason.GPU, f"ESXi {host.version} gives a VM {most} PCI functions at most, {wanted} needed")


def old_for_nvswitch(host: Host, requirements: NodeRequirements) -> Iterator[Reason]:
    board = requirements.board
    if not requirements.kind.spec.linked or requirements.gpus <= _PAIR or board is None:
        return
    since, name = _NVSWITCH.get(board.code[0], ((0,), ""))
    if numbers(host.version) < since:
        yield Reason(RejectReason.GPU, f"ESXi {host.version} joins no {board.title} by NVSwitch, {name} needed")


def many_by_dynamic(host: Host, requirements: NodeRequirements) -> Iterator[Reason]:
    if requirements.kind.spec.dynamic and requirements.gpus > 1 and len(host.passthrough_gpus) > _MOST_GPUS:
        yield Reason(
            RejectReason.GPU,
            f"has {len(host.passthrough_gpus)} GPUs, and in a server of more than {_MOST_GPUS} a VM gets several "
            'of them only by gpu.kind = "passthrough"',
        )
