"""From the text of a vhpc-toolkit file to the text of a cluster file, and a list of what it could not carry over."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING

from vsphere_ml.config.document import toml_value
from vsphere_ml.config.fields import clip
from vsphere_ml.config.mistakes import invalid_file
from vsphere_ml.config.vhpc import ini, site
from vsphere_ml.config.vhpc.nodes import Block, block
from vsphere_ml.config.vhpc.vm_options import SWITCHES, Notes, list_vm_options
from vsphere_ml.core.diagnostics import Diagnostic, Severity
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from vsphere_ml.config.vhpc.ini import Sections
from vsphere_ml.config.vhpc.vm_options import VmOptions

_LAST = 1 << 30
_CARRIED = frozenset(
    {
        "template",
        "linked",
        "datacenter",
        "cluster",
        "vm_folder",
        "resource_pool",
        "datastore",
        "cpu",
        "memory",
        "latency",
        "cpu_reservation",
        "memory_reservation",
        "mmio_size",
        "host",
        "vgpu",
        "device",
        "sriov_port_group",
        "pvrdma_port_group",
        "port_group",
        "is_dhcp",
        "ip",
        "netmask",
        "gateway",
        "dns",
        "domain",
        "guest_hostname",
        "guest_username",
    }
)
_MINE = "vsml gives nodes the fast NIC by its model and its port group, and chooses the function near the GPU"
_STEP = "write it as a step of a playbook; see docs/reference/playbooks.md"
_LEFT = {
    "guest_password": "guests are entered with SSH keys; the password is not copied",
    "script": _STEP,
    "sequence": _STEP,
    "barrier": _STEP,  # its name before version 1.0
    "pf": _MINE,
    "sriov_dvs_name": "the port group is found by its name",
    "dvs_name": "the port group is found by its name",
    "svs_name": "the port group is found by its name",
    "cpu_shares": "shares are not set; memory is reserved whole, CPUs with latency",
    "memory_shares": "shares are not set; memory is reserved whole",
    "cores_per_socket": "sockets are left to vSphere",
    "secure_boot": "it stays as the template has it",
    "allow_guest_mtu_change": "it is not set on SR-IOV adapters",
    "instant": "instant clones are not made; these are full ones",
    "adapter_number": "the management NIC is the first one",
    "power": "VMs are powered on",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """A cluster file's text, how many nodes it has, and what was not carried over or is to be filled in."""

    text: str
    nodes: int
    notes: tuple[Diagnostic, ...]


def translate(text: str, file: str) -> Translation:
    """Return the cluster file of a vhpc-toolkit file; ConfigError with every mistake of it, each with its line."""
    read, notes = ini.sections(text, file), Notes()
    rows = list_vm_options(read, notes)
    blocks = [block(row, read, notes) for row in rows]
    tables = {
        "cluster": {"name": _label(PurePath(file).stem), "anti_affinity": False},
        "location": site.location(rows, notes),
        "source": site.source(rows, notes),
        "guest": site.guest(rows, notes),
    }
    _leave_the_rest(rows, read, notes)
    if read.problems:
        raise invalid_file(file, read.problems)
    found = tuple(sorted(notes.found, key=lambda note: (note.line or _LAST, note.target)))
    return Translation(
        text="\n".join(_lines(file, tables, blocks, found)) + "\n",
        nodes=sum(len(row.names) for row in rows),
        notes=found,
    )


def _leave_the_rest(rows: Sequence[VmOptions], read: Sections, notes: Notes) -> None:
    for row in rows:
        for key, items in row.items.items():
            for item in items:
                if key not in _CARRIED and (key != "power" or item.value.lower() == "off"):
                    notes.leave(item, _LEFT.get(key, "vhpc-toolkit has no such key"))
    for name in SWITCHES:
        for item in read.items.get(name, {}).values():
            notes.leave(item, "vsml makes no switches; this one, its uplinks and its port group must be there")
    for item in read.items.get("DEFAULT", {}).values():
        notes.leave(item, "vhpc-toolkit would read it in every section; name the section in the rows that mean it")


def _label(stem: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", stem)[:63].strip("-") or "cluster"


def _lines(
    file: str, tables: Mapping[str, Mapping[str, object]], blocks: Sequence[Block], notes: Sequence[Diagnostic]
) -> Iterator[str]:
    yield f"# Made by `vsml import vhpc` from {clip(PurePath(file).name)}. The numbers are that file's lines."
    yield from _note_lines("To fill in:", [note for note in notes if note.severity is Severity.WARNING])
    yield from _note_lines("Not carried over:", [note for note in notes if note.severity is Severity.INFO])
    for name in ("cluster", "location", "source"):
        yield from _table(f"[{name}]", tables[name])
    yield from ("", "# [vcenter] is in another file there; without it the environment is used.")
    shared = _shared_keys(blocks)
    yield from _table("[defaults]", shared) if shared else ()
    for each in blocks:
        own = {key: value for key, value in each.keys.items() if key not in shared}
        yield from _table("[[nodes]]", {"name": each.options.written, **own})
        yield from _table("[nodes.hosts]", each.hosts) if each.hosts else ()
    yield from _table("[guest]", tables["guest"]) if tables["guest"] else ()


def _note_lines(title: str, notes: Sequence[Diagnostic]) -> Iterator[str]:
    if notes:
        yield from ("#", f"# {title}")
    for note in notes:
        place = f"{note.line}: " if note.line else ""
        yield f"#   {place}{note.target}: {note.message}"


def _shared_keys(blocks: Sequence[Block]) -> dict[str, object]:
    """Return the keys on which all blocks agree; a node's host is its block's business."""
    if len(blocks) < 2:  # noqa: PLR2004 - two are needed to share
        return {}
    first = blocks[0].keys
    own = {"host", "hosts", "network.address"}
    return {
        key: value
        for key, value in first.items()
        if key not in own and all(key in each.keys and each.keys[key] == value for each in blocks)
    }


def _table(header: str, values: Mapping[str, object]) -> Iterator[str]:
    yield from ("", header)
    dotted = header != "[nodes.hosts]"
    for key, value in values.items():
        yield f"{key if dotted else toml_value(key)} = {toml_value(value)}"
