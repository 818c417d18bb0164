"""The custom attributes that carry ownership: their keys in this vCenter, how they are read and set."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pyVmomi import vim

from vsphere_ml.core.marks import CLUSTER_ATTRIBUTE, NODE_ATTRIBUTE
from vsphere_ml.vsphere.collect import of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vsphere_ml.core.changes import Marks
    from vsphere_ml.vsphere.session import Session

LOCK_ATTRIBUTE = "vsml.lock"


class Fields:
    """The vCenter's custom attributes by name."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._keys: dict[str, int] = {}
        self._cluster: int | None = None
        self._node: int | None = None

    def load(self) -> None:
        """Read the attributes that exist."""
        kind = vim.CustomFieldsManager
        rows = of(self._session, [self._session.content.customFieldsManager], {kind: ["field"]})
        self._keys = {each.name: each.key for _, props in rows for each in props.get("field") or ()}
        self._cluster = self._keys.get(CLUSTER_ATTRIBUTE)
        self._node = self._keys.get(NODE_ATTRIBUTE)

    def marks(self, values: Iterable[Any] | None) -> tuple[str | None, str | None]:
        """Return the cluster's and the node's mark among an object's attribute values."""
        cluster = node = None
        for each in values or ():
            if each.key == self._cluster:
                cluster = each.value or None  # an emptied attribute marks nothing
            elif each.key == self._node:
                node = each.value or None
        return cluster, node

    def value(self, values: Iterable[Any] | None, name: str) -> str | None:
        """Return one attribute's value."""
        key = self._keys.get(name)
        return next((each.value for each in values or () if each.key == key), None)

    def mark(self, found: Any, marks: Marks) -> None:
        """Mark an object as ours."""
        self.set(found, CLUSTER_ATTRIBUTE, marks.cluster)
        if marks.node:
            self.set(found, NODE_ATTRIBUTE, marks.node)

    def set(self, found: Any, name: str, value: str) -> None:
        """Set an attribute, defined in the vCenter when it is not yet."""
        self._session.content.customFieldsManager.SetField(found, self._key(name), value)

    def _key(self, name: str) -> int:
        if name not in self._keys:
            # For all types, as folders carry it too. Who is told that it exists has lost a race, and uses the other's.
            with suppress(vim.fault.DuplicateName):
                self._session.content.customFieldsManager.AddCustomFieldDef(name)
            self.load()
        return self._keys[name]
