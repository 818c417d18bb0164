"""Counts the free ports of port groups that make no more when one is needed.

vSphere API, DVPortgroupConfigInfo: a static port group has `numPorts` ports unless it expands, an ephemeral one as many
as are needed. A VM that is off holds its port in a group of early binding.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyVmomi import vim, vmodl

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from vsphere_ml.core.model.inventory import Network, NetworkRef, SwitchRef

_EPHEMERAL = "ephemeral"


def most_ports(props: Mapping[str, Any]) -> int | None:
    """Return how many ports a distributed port group can have; None where it makes as many as are needed."""
    if props.get("config.type") in {None, _EPHEMERAL} or props.get("config.autoExpand"):
        return None
    return props.get("config.numPorts")


def with_free_ports(
    networks: tuple[Network, ...], names: Collection[str], switches: Mapping[SwitchRef, Any]
) -> tuple[Network, ...]:
    """Return the networks; those of the names that have no more than so many ports, with how many are free."""
    return tuple(
        replace(each, free_ports=_free_ports(each, switch))
        if each.name in names
        and each.ports is not None
        and each.switch_ref is not None
        and (switch := switches.get(each.switch_ref)) is not None
        else each
        for each in networks
    )


def _free_ports(network: Network, switch: Any) -> int | None:
    """Return how many ports nobody is connected to; None where vCenter does not say."""
    used = _used_ports(network.ref, switch)
    return None if used is None or network.ports is None else max(0, network.ports - used)


def _used_ports(group: NetworkRef, switch: Any) -> int | None:
    criteria: Any = vim.dvs.PortCriteria(connected=True, portgroupKey=[group], inside=True)
    try:
        return len(switch.FetchDVPorts(criteria) or ())
    except (vmodl.MethodFault, vim.fault.VimFault):
        return None
