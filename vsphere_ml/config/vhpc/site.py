"""Carries over what a cluster file says once: where the VMs go, what they are cloned from, how guests are entered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.config.fields import clip

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.config.vhpc.ini import Item
    from vsphere_ml.config.vhpc.vm_options import Notes, VmOptions

TRUE = frozenset({"y", "yes", "t", "true", "on", "1"})  # as distutils' strtobool, which vhpc-toolkit asks
_LOCATION = {
    "datacenter": "datacenter",
    "cluster": "cluster",
    "vm_folder": "folder",
    "resource_pool": "pool",
    "datastore": "datastore",
}


def location(rows: Sequence[VmOptions], notes: Notes) -> dict[str, object]:
    """Return the keys of `[location]`."""
    found = {ours: _one(rows, theirs, notes) for theirs, ours in _LOCATION.items()}
    return {key: item.value for key, item in found.items() if item is not None}


def source(rows: Sequence[VmOptions], notes: Notes) -> dict[str, object]:
    """Return the keys of `[source]`."""
    template, linked = _one(rows, "template", notes), _one(rows, "linked", notes)
    if template is None:
        notes.ask(None, "source.template", "no VM names the template it is cloned from")
        return {}
    is_linked = linked is not None and linked.value.lower() in TRUE
    return {"template": template.value, "clone": "linked" if is_linked else "full"}


def guest(rows: Sequence[VmOptions], notes: Notes) -> dict[str, object]:
    """Return the keys of `[guest]`, where vhpc-toolkit customizes guests or signs in to them."""
    made: dict[str, object] = {}
    if user := _one(rows, "guest_username", notes):
        made["user"] = user.value
    if any(row.item("ip") or row.item("is_dhcp") for row in rows):
        made["first_boot"] = "customization"
        if domain := _one(rows, "domain", notes):
            made["domain"] = domain.value
    elif made:
        made["first_boot"] = "none"
    return made


def _one(rows: Sequence[VmOptions], key: str, notes: Notes) -> Item | None:
    """Return the value all rows share; where they differ the first, and the others are noted."""
    found = [item for row in rows if (item := row.item(key)) is not None]
    for item in found[1:]:
        if item.value != found[0].value:
            notes.leave(
                item, f"`{clip(item.value)}`: a cluster has one, and line {found[0].line} says `{clip(found[0].value)}`"
            )
    if found and any(brace in found[0].value for brace in ("{", "}")) and "${" not in found[0].value:
        notes.ask(found[0].line, key, "a range: each VM has its own there, and a cluster has one here")
        return None
    return found[0] if found else None
