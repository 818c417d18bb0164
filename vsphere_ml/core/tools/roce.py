"""A host's RoCE settings: options of the ConnectX drivers, which ESXi keeps as one string for each module.

By VMware, "Configuring Lossless Ethernet on ESXi Hosts" (priority 3 as pfctx=0x08 pfcrx=0x08, DSCP with trust_state=2
and dscp_force=26), and by NVIDIA's manual of the native ESXi driver (ecn, off by default). Each takes a reboot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from vsphere_ml.core.model.spec import RoceSpec

MTUS = range(1500, 9979)  # of a ConnectX port (`ip -d link`: maxmtu 9978); how much of it a switch takes, vCenter says
CORE, RDMA = "nmlx5_core", "nmlx5_rdma"
MODULES = (CORE, RDMA)
_TRUST_DSCP = "2"


def wanted_parameters(roce: RoceSpec) -> dict[str, dict[str, str]]:
    """Return the parameters that are asked for, by module; no module of which nothing is."""
    core: dict[str, str] = {}
    if roce.pfc_priority is not None:
        mask = f"0x{1 << roce.pfc_priority:02x}"
        core |= {"pfctx": mask, "pfcrx": mask}  # both directions must be the same
    if roce.dscp is not None:
        core["trust_state"] = _TRUST_DSCP
    if roce.ecn is not None:
        core["ecn"] = str(int(roce.ecn))
    rdma = {"dscp_force": str(roce.dscp)} if roce.dscp is not None else {}
    return {module: keys for module, keys in ((CORE, core), (RDMA, rdma)) if keys}


def merge_options(options: str, keys: Mapping[str, str]) -> str:
    """Return a module's whole string with these parameters in it, and all others as they are.

    ESXi replaces the string as a whole: what is left out, such as `max_vfs`, would be gone. A string that has the
    parameters already, in whatever notation, comes back unchanged.
    """
    missing = {name: value for name, value in keys.items() if not _is_same(name, value, parameters(options))}
    if not missing:
        return options
    remaining = [word for word in options.split() if word.partition("=")[0] not in missing]
    return " ".join([*remaining, *(f"{name}={value}" for name, value in missing.items())])


def differing_options(options: str, keys: Mapping[str, str]) -> Iterator[str]:
    """Yield in words which parameters are not as wanted."""
    seen = parameters(options)
    for name, value in keys.items():
        if not _is_same(name, value, seen):
            yield f"{name} is {seen.get(name, 'not set')}, {value} wanted"


def unset(asked: RoceSpec, seen: Iterable[tuple[str, str]] | None) -> bool:
    """Return whether a host's drivers are known not to have all of what is asked for; `seen` as `Host` has it."""
    if seen is None:
        return False
    there = dict(seen)
    return any(
        True
        for module, keys in wanted_parameters(asked).items()
        for _ in differing_options(there.get(module, ""), keys)
    )


def parameters(options: str) -> dict[str, str]:
    """Return a module's string by parameter."""
    words = (word.partition("=") for word in options.split())
    return {name: value for name, _, value in words}


def changed_parameters(options: str, wanted_options: str) -> tuple[tuple[str, str], ...]:
    """Return the parameters that a wanted string has otherwise than the present one."""
    seen = parameters(options)
    return tuple((name, value) for name, value in parameters(wanted_options).items() if seen.get(name) != value)


def by_hand(module: str, options: str) -> str:
    """Return what sets a module's string, typed on the host; it needs a reboot afterwards."""
    return f'esxcli system module parameters set -m {module} -p "{options}"'


def _is_same(name: str, value: str, seen: Mapping[str, str]) -> bool:
    text = seen.get(name)
    if text is None:
        return name == "ecn" and value == "0"  # off is its documented default
    try:
        return int(text, 0) == int(value, 0)
    except ValueError:
        return text == value
