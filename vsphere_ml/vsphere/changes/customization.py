"""Builds guest customizations: Linux preparation with a host name, a domain, addresses and name servers."""

from __future__ import annotations

from copy import deepcopy
from ipaddress import ip_interface
from typing import TYPE_CHECKING, Any

from pyVmomi import vim

from vsphere_ml.core.errors import VSphereError
from vsphere_ml.core.nodes.firstboot import ADDRESS_KEY, in_words
from vsphere_ml.vsphere.changes import specs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vsphere_ml.core.nodes.firstboot import Customization
    from vsphere_ml.vsphere.connection.session import Session

_api: Any = vim.vm.customization


def spec(customization: Customization, devices: Iterable[Any], named: Any | None = None) -> Any:
    """Return the specification for a VM with these devices; `named` is one of vCenter's, to be filled for this guest.

    It has an entry for each network adapter, as vSphere wants it, by MAC address. What a named one
    says is kept, but for the host name, which is the node's, and an address that the cluster file gives.
    """
    made = deepcopy(named) if named is not None else _plain_specification(customization)
    made.identity.hostName = _api.FixedName(name=customization.host_name)
    cards = [each for each in devices if isinstance(each, vim.vm.device.VirtualEthernetCard)]
    remaining = list(made.nicSettingMap or ())
    fast = _roce_addresses(customization, cards)
    made.nicSettingMap = [
        _mapping(customization, card, remaining[at] if at < len(remaining) else None, fast.get(card.key))
        for at, card in enumerate(cards)
    ]
    return made


def _roce_addresses(customization: Customization, cards: Iterable[Any]) -> dict[int, str]:
    """Return the addresses of the fast NICs by their device keys, dealt out in the order of their ports."""
    fast = [card for card in cards if specs.is_fast(card)]
    given = (customization.roce_address, *customization.more_roce_addresses)
    ordered = sorted(fast, key=lambda card: (_port(card), card.key))
    return {card.key: each for card, each in zip(ordered, given, strict=False) if each}


def _port(card: Any) -> str:
    sriov = getattr(card, "sriovBacking", None)
    backing = sriov.physicalFunctionBacking if sriov else None
    return str(backing.id or "") if backing else ""


def find_specification(session: Session, customization: Customization) -> Any | None:
    """Return the specification that vCenter has by the name, where one is named."""
    if customization.spec is None:
        return None
    manager = session.content.customizationSpecManager
    try:
        return session.read(lambda: manager.GetCustomizationSpec(name=customization.spec)).spec
    except vim.fault.NotFound as fault:
        raise VSphereError(
            f"vCenter has no customization specification `{customization.spec}`",
            code="vsphere.no-customization",
            target=customization.host_name,
            hint="govc customization.ls lists those there are; set guest.customization_spec",
        ) from fault


def names(session: Session) -> frozenset[str] | None:
    """Return the names of vCenter's specifications; None for an account that may not read them."""
    manager = session.content.customizationSpecManager
    try:
        found = session.read(lambda: manager.info)
    except vim.fault.NoPermission:
        return None
    return None if found is None else frozenset(each.name for each in found)


def note(customization: Customization) -> Any:
    """Return the reconfiguration by which the VM remembers it."""
    made: Any = vim.vm.ConfigSpec
    return made(extraConfig=[vim.option.OptionValue(key=ADDRESS_KEY, value=in_words(customization.address))])


def _plain_specification(customization: Customization) -> Any:
    return _api.Specification(
        identity=_api.LinuxPrep(domain=customization.domain, hwClockUTC=True),
        globalIPSettings=_api.GlobalIPSettings(
            dnsServerList=list(customization.address.dns) if customization.address else [],
            dnsSuffixList=[customization.domain],
        ),
    )


def _mapping(customization: Customization, card: Any, preserved: Any | None, fast: str | None) -> Any:
    adapter = preserved.adapter if preserved is not None else _api.IPSettings(ip=_api.DhcpIpGenerator())
    if specs.is_fast(card):
        adapter = _static_settings(fast, None, adapter)
    elif customization.address is not None:
        adapter = _static_settings(customization.address.address, customization.address.gateway, adapter)
    return _api.AdapterMapping(macAddress=card.macAddress or None, adapter=adapter)


def _static_settings(address: str | None, gateway: str | None, otherwise: Any) -> Any:
    if address is None:
        return otherwise
    place = ip_interface(address)
    return _api.IPSettings(
        ip=_api.FixedIp(ipAddress=str(place.ip)),
        subnetMask=str(place.netmask),
        gateway=[gateway] if gateway else [],
        dnsServerList=list(otherwise.dnsServerList or ()),
    )
