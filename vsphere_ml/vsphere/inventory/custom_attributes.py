"""The custom attributes that carry ownership: their keys in this vCenter, how they are read and set."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

from pyVmomi import vim

from vsphere_ml.core.errors import VSphereError
from vsphere_ml.core.model.marks import CLUSTER_ATTRIBUTE
from vsphere_ml.vsphere.inventory.collect import collect_objects

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vsphere_ml.vsphere.connection.session import Session

LOCK_ATTRIBUTE = "vsml.lock"
WANTED = {vim.CustomFieldsManager: ("field",)}
_GLOBAL = None  # an attribute that somebody has defined for all types


class CustomAttributes:
    """The vCenter's custom attributes, by name and the type of object they are defined for."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._keys: dict[tuple[str, type | None], int] = {}
        self._clusters: frozenset[int] = frozenset()
        self._defining = Lock()
        self.loaded = False

    @property
    def manager(self) -> Any:
        """The object that has them, whose properties `WANTED` are for `take`."""
        return self._session.content.customFieldsManager

    def load(self) -> None:
        """Read the attributes that exist."""
        rows = collect_objects(self._session, [self.manager], WANTED)
        self.take(each for _, props in rows for each in props.get("field") or ())

    def take(self, defined: Iterable[Any]) -> None:
        """Know these attributes and no others."""
        defined, self.loaded = list(defined), True
        self._keys = {(each.name, each.managedObjectType or _GLOBAL): each.key for each in defined}
        self._clusters = self._named(CLUSTER_ATTRIBUTE)

    def _named(self, wanted: str) -> frozenset[int]:
        return frozenset(key for (name, _), key in self._keys.items() if name == wanted)

    def owner(self, values: Iterable[Any] | None) -> str | None:
        """Return the cluster's mark among an object's attribute values."""
        marks = (each.value for each in values or () if each.key in self._clusters)
        return next(marks, None) or None  # an emptied attribute marks nothing

    def value(self, values: Iterable[Any] | None, name: str) -> str | None:
        """Return one attribute's value."""
        keys = self._named(name)
        return next((str(each.value) for each in values or () if each.key in keys), None)

    def mark(self, found: Any, cluster: str) -> None:
        """Mark an object as the cluster's."""
        self.set(found, CLUSTER_ATTRIBUTE, cluster)

    def set(self, found: Any, name: str, value: str) -> None:
        """Set an attribute, defined in the vCenter when it is not yet."""
        self.manager.SetField(found, self._key(name, type(found)), value)

    def _key(self, name: str, kind: type) -> int:
        with self._defining:
            if self._known(name, kind) is None:
                self._define(name, kind)
            return self._known(name, kind) or 0

    def _define(self, name: str, kind: type) -> None:
        try:
            made = self.manager.AddCustomFieldDef(name=name, moType=kind)
        except (vim.fault.DuplicateName, vim.fault.NoPermission):
            self.load()  # somebody has defined it since it was looked for
            if self._known(name, kind) is None:
                raise
        else:
            self._keys[name, kind] = made.key
            self._clusters = self._named(CLUSTER_ATTRIBUTE)

    def _known(self, name: str, kind: type) -> int | None:
        return self._keys.get((name, kind), self._keys.get((name, _GLOBAL)))


def not_ours(name: str) -> VSphereError:
    """Return the refusal to touch what does not carry our mark."""
    return VSphereError(
        f"`{name}` does not carry our mark, so it is not touched",
        code="vsphere.not-ours",
        target=name,
        hint="somebody changed its custom attribute `vsml.cluster`; set it back, or see to the object by hand",
    )
