"""Reads content libraries over the vSphere Automation API: their names, and the items of one with their VM templates.

The paths under `/rest` are those that govmomi's client uses; every answer there is wrapped in `value`. A VM template's
`vm_template` is its managed object id in the SOAP API (vSphere Automation API, `VmTemplate_LibraryItems_Info`).
"""

from __future__ import annotations

import hashlib
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from vsphere_ml.core.errors import VSphereError
from vsphere_ml.core.model.inventory import OVF, VM_TEMPLATE, ContentLibraries, LibraryItem, OvfPackage, VmRef

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.vsphere.connection.rest import RestSession
    from vsphere_ml.vsphere.connection.session import Session

_LIBRARY = "/rest/com/vmware/content/library"
_ITEM = f"{_LIBRARY}/item"
_TEMPLATE = "/rest/vcenter/vm-template/library-items"
# What an answer raises that is not what the API describes.
_UNEXPECTED = (ValueError, KeyError, TypeError)


def read_libraries(session: Session, library: str, item: str) -> ContentLibraries:
    """Return the names of the content libraries and the items of those called `library`, `item`'s with its VM template.

    Raises VSphereError `library.unreadable`.
    """
    try:
        with session.rest() as api:
            ids = {each: _value(api, f"{_LIBRARY}/id:{quote(each)}")["name"] for each in _list(api, _LIBRARY)}
            items = [each for key, name in ids.items() if name == library for each in _items(api, key, item)]
            return ContentLibraries(names=tuple(sorted(map(str, ids.values()))), items=tuple(items))
    except (OSError, HTTPException, *_UNEXPECTED) as error:
        raise VSphereError(
            f"the content libraries of {session.name} cannot be read: {error}",
            code="library.unreadable",
            target="source.library",
            hint="`govc library.ls` asks the same; or set source.template to a template of the inventory",
        ) from error


def _items(api: RestSession, library: str, wanted: str) -> Iterator[LibraryItem]:
    for key in _list(api, f"{_ITEM}?library_id={quote(library)}"):
        found = _value(api, f"{_ITEM}/id:{quote(key)}")
        name, kind = str(found["name"]), str(found["type"])
        vm = _value(api, f"{_TEMPLATE}/{quote(key)}")["vm_template"] if (name, kind) == (wanted, VM_TEMPLATE) else ""
        package = _package(found) if (name, kind) == (wanted, OVF) else None
        yield LibraryItem(name=name, type=kind, vm=VmRef(str(vm)) if vm else None, package=package)


def _package(found: Any) -> OvfPackage:
    """Return the package of an item: vCenter counts a new version up when a file of it changes."""
    version = f"{found['id']} {found.get('content_version', '')}"
    return OvfPackage(
        name=str(found["name"]), digest=hashlib.sha256(version.encode()).hexdigest(), item=str(found["id"])
    )


def _list(api: RestSession, path: str) -> list[str]:
    return list(_value(api, path) or ())  # govmomi's simulator has null for an empty list


def _value(api: RestSession, path: str) -> Any:
    return api.get(path)["value"]
