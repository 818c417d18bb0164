"""An Ansible inventory of a cluster's guests, as YAML.

Ansible takes `{{ … }}` in an inventory's values for templates and runs them; such values are tagged `!unsafe`.
"""

from __future__ import annotations

import json
import re
from dataclasses import field
from typing import TYPE_CHECKING

from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_NOT_OF_GROUPS = re.compile(r"[^A-Za-z0-9_]+")
# What YAML's plain characters leave out, and JSON writes as it is.
_BEYOND_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryGuest:
    """A node as Ansible sees it. `address` is None where nobody knows it; `groups` are names of any kind."""

    name: str
    address: str | None
    groups: tuple[str, ...] = ()
    values: Mapping[str, str | int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """How the guests are entered. `arguments` are those that every call of ssh gets; never a password."""

    user: str
    port: int
    key_file: str | None
    arguments: str


def inventory(cluster: str, guests: Sequence[InventoryGuest], login: Login) -> str:
    """Return the inventory: a group of the cluster with everyone, and one for each group that guests are in."""
    return "\n".join(_lines(cluster, guests, login)) + "\n"


def group_name(text: str) -> str:
    """Return a text as Ansible allows it for a group: letters, digits and underscores, no digit first."""
    name = _NOT_OF_GROUPS.sub("_", text).strip("_").lower() or "group"
    return f"_{name}" if name[0].isdigit() else name


def _lines(cluster: str, guests: Sequence[InventoryGuest], login: Login) -> Iterator[str]:
    yield "# Made by `vsml export ansible`. Addresses are as they were then."
    for guest in guests:
        if guest.address is None:
            yield f"# {guest.name} has no known address, and is left out."
    there = [guest for guest in guests if guest.address is not None]
    yield from ("all:", "  children:", f"    {group_name(cluster)}:", "      hosts:" if there else "      hosts: {}")
    for guest in there:
        yield f"        {_yaml(guest.name)}:"
        yield from _values({"ansible_host": guest.address or "", **guest.values}, 10)
    yield "      vars:"
    entry: dict[str, str | int] = {"ansible_user": login.user, "ansible_port": login.port}
    key = {"ansible_ssh_private_key_file": login.key_file} if login.key_file else {}
    yield from _values({**entry, **key, "ansible_ssh_common_args": login.arguments}, 8)
    yield from _groups(cluster, there)


def _groups(cluster: str, guests: Sequence[InventoryGuest]) -> Iterator[str]:
    own = group_name(cluster)
    for group in sorted({group_name(group) for guest in guests for group in guest.groups} - {own, "all"}):
        yield from (f"    {group}:", "      hosts:")
        yield from (f"        {_yaml(guest.name)}:" for guest in guests if group in map(group_name, guest.groups))


def _values(values: Mapping[str, str | int], indent: int) -> Iterable[str]:
    return (f"{' ' * indent}{key}: {_yaml(value)}" for key, value in values.items())


def _yaml(value: str | int) -> str:
    """Return a value as YAML reads it: a string of JSON is one of YAML, but for some characters."""
    if isinstance(value, int):
        return str(value)
    text = _BEYOND_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))
    return f"!unsafe {text}" if "{" in value else text
