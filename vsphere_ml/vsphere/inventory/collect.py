"""Reads properties in bulk: leaf paths only, paged, nothing newer than the server.

Attribute access on a managed object is one round trip each and fetches whole subtrees, so nobody does that here.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyVmomi import VmomiSupport, vim, vmodl

from vsphere_ml.core.errors import VSphereError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from vsphere_ml.vsphere.connection.session import Session

_types: Any = VmomiSupport
_P: Any = vmodl.query.PropertyCollector
PAGE = 1000


class Properties(dict[str, Any]):
    """The properties of one object that are set, by their paths.

    Raises VSphereError `vcenter.no-property` for one that vsml cannot do without and vCenter left out: it does so where
    the account may not see the object (vSphere Web Services API, PropertyCollector, `missingSet`).
    """

    def __init__(self, found: Any) -> None:
        super().__init__((each.name, each.val) for each in found.propSet)
        self._object = found.obj

    def __missing__(self, path: str) -> Any:
        kind, moid = type(self._object).__name__.rpartition(".")[2], reference(self._object)
        raise VSphereError(
            f"vCenter does not give `{path}` of the {kind} `{moid}`",
            code="vcenter.no-property",
            target=moid,
            hint="give the account System.Read on it and on what it is in; `vsml doctor` names what is missing",
        )


Row = tuple[Any, Properties]


def collect_below(session: Session, container: Any, wanted: Mapping[Any, Iterable[str]]) -> Iterator[Row]:
    """Yield every object of these types below a container, with its properties that are set."""
    with _view(session, container, list(wanted)) as view:
        walk = _P.TraversalSpec(name="view", type=vim.view.ContainerView, path="view", skip=False)
        start = _P.ObjectSpec(obj=view, skip=True, selectSet=[walk])
        yield from _pages(session, [start], wanted)


def collect_objects(
    session: Session, objects: Iterable[Any], wanted: Mapping[Any, Iterable[str]], page: int = PAGE
) -> Iterator[Row]:
    """Yield these objects, with their properties that are set. Objects that are gone meanwhile are left out.

    They are read so many at once: an answer is bounded in time and size.
    """
    starts = [_P.ObjectSpec(obj=each, skip=False) for each in objects]
    for begin in range(0, len(starts), page):
        yield from _pages(session, starts[begin : begin + page], wanted)


@contextmanager
def _view(session: Session, container: Any, types: list[Any]) -> Iterator[Any]:
    view = session.content.viewManager.CreateContainerView(container, types, True)
    try:
        yield view
    finally:
        view.Destroy()


def _pages(session: Session, starts: list[Any], wanted: Mapping[Any, Iterable[str]]) -> Iterator[Row]:
    version = session.stub.version
    properties = [
        _P.PropertySpec(type=kind, pathSet=known_paths(kind, paths, version), all=False)
        for kind, paths in wanted.items()
    ]
    collector = session.content.propertyCollector
    spec = _P.FilterSpec(objectSet=starts, propSet=properties, reportMissingObjectsInResults=True)
    page = collector.RetrievePropertiesEx([spec], _P.RetrieveOptions(maxObjects=PAGE))
    while page is not None:
        for found in page.objects:
            yield found.obj, Properties(found)
        page = collector.ContinueRetrievePropertiesEx(page.token) if page.token else None


def known_paths(kind: Any, paths: Iterable[str], version: str) -> list[str]:
    """Return the paths that a server of this API version has; a newer one would fail the whole read."""
    return [path for path in paths if _exists(kind, path, version)]


def _exists(kind: Any, path: str, version: str) -> bool:
    for name in path.split("."):
        try:
            info = kind._GetPropertyInfo(name)  # noqa: SLF001 - where pyvmomi keeps the version of each property
        except AttributeError:
            return True  # of a subtype that the declared type does not show; the server knows
        if not _types.IsChildVersion(version, info.version):
            return False
        kind = info.type
    return True


def reference(found: Any) -> str:
    """Return an object's id."""
    return str(found._GetMoId())  # noqa: SLF001 - pyvmomi's only accessor


def managed_object(session: Session, kind: str, moid: str) -> Any:
    """Return a handle on an object; nothing is called."""
    return _types.GetVmodlType(kind)(moid, session.stub)
