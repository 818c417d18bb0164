"""Reads properties in bulk: leaf paths only, paged, nothing newer than the server.

Attribute access on a managed object is one round trip each and fetches whole subtrees, so nobody does that here.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from pyVmomi import VmomiSupport, vim, vmodl

from vsphere_ml.vsphere.connection.required import NoPropertyError, fits, source_of, type_name, unexpected_answer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from vsphere_ml.core.errors import VSphereError
    from vsphere_ml.vsphere.connection.session import Session

_types: Any = VmomiSupport
_P: Any = vmodl.query.PropertyCollector
PAGE = 1000
K = TypeVar("K")


_UNREADABLE = "give the account System.Read on it and on what it is in; `vsml doctor` names what is missing"


class Properties(dict[str, Any]):
    """The properties of one object that are set, by their paths.

    Raises VSphereError `vcenter.no-property` for one that vsml cannot do without and vCenter left out: it does so where
    the account may not see the object (vSphere Web Services API, PropertyCollector, `missingSet`). Raises it
    `vcenter.unexpected-output` for a value that is not of the property's type.
    """

    def __init__(self, found: Any) -> None:
        super().__init__((each.name, each.val) for each in found.propSet if getattr(each, "val", None) is not None)
        self._object = found.obj
        kind: Any = type(found.obj)
        for path, value in self.items():
            declared = _declared_type(kind, path)
            if declared is not None and not fits(value, declared):
                raise self._misfit(path, value)

    def __missing__(self, path: str) -> Any:
        raise NoPropertyError(path, type_name(self._object), source_of(self._object), _UNREADABLE)

    def _misfit(self, path: str, value: Any) -> VSphereError:
        of = f"{type_name(self._object)} `{reference(self._object)}`"
        return _answer_error(f"`{path}` of the {of} as a value of another type, {type_name(value)}", self._object)


def _answer_error(what: str, found: Any) -> VSphereError:
    return unexpected_answer(f"vCenter gives {what}", reference(found))


def _foreign_error(found: Any) -> VSphereError:
    return _answer_error(f"the {type_name(found)} `{reference(found)}`, which was not asked for", found)


Row = tuple[Any, Properties]


def collect_below(
    session: Session, container: Any, wanted: Mapping[Any, Iterable[str]], besides: Sequence[Any] = ()
) -> Iterator[Row]:
    """Yield every object of these types below a container, and those `besides`, with its properties that are set."""
    outside = {type(each) for each in besides}
    with _view(session, container, [kind for kind in wanted if kind not in outside]) as view:
        walk = _P.TraversalSpec(name="view", type=vim.view.ContainerView, path="view", skip=False)
        starts = [_P.ObjectSpec(obj=view, skip=True, selectSet=[walk])]
        starts += [_P.ObjectSpec(obj=each, skip=False) for each in besides]
        yield from _pages(session, starts, wanted)


def collect_objects(
    session: Session, objects: Iterable[Any], wanted: Mapping[Any, Iterable[str]], page: int = PAGE
) -> Iterator[Row]:
    """Yield these objects, with their properties that are set. Objects that are gone meanwhile are left out.

    They are read so many at once: an answer is bounded in time and size. VSphereError `vcenter.unexpected-output` for
    an object that is none of them.
    """
    starts = [_P.ObjectSpec(obj=each, skip=False) for each in objects]
    asked = {reference(each.obj) for each in starts}
    for begin in range(0, len(starts), page):
        for found, props in _pages(session, starts[begin : begin + page], wanted):
            if reference(found) not in asked:
                raise _foreign_error(found)
            yield found, props


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
    kinds = tuple(wanted)
    while page is not None:
        for found in page.objects:
            if not isinstance(found.obj, kinds):
                raise _foreign_error(found.obj)
            yield found.obj, Properties(found)
        page = collector.ContinueRetrievePropertiesEx(page.token) if page.token else None


def known_paths(kind: Any, paths: Iterable[str], version: str) -> list[str]:
    """Return the paths that a server of this API version has; a newer one would fail the whole read."""
    return [path for path in paths if _exists(kind, path, version)]


def _exists(kind: Any, path: str, version: str) -> bool:
    return all(_types.IsChildVersion(version, info.version) for info in _infos(kind, path))


def _infos(kind: Any, path: str) -> Iterator[Any]:
    """Yield what pyvmomi knows of each part of a path; it ends at a subtype that the declared type does not show."""
    for name in path.split("."):
        try:
            info = kind._GetPropertyInfo(name)  # noqa: SLF001 - where pyvmomi keeps it
        except AttributeError:
            return
        yield info
        kind = info.type


@cache
def _declared_type(kind: Any, path: str) -> Any:
    """Return the type that the API declares for a property; None where the object's type does not show it."""
    infos = [*_infos(kind, path)]
    return infos[-1].type if len(infos) == path.count(".") + 1 else None


def reference(found: Any) -> str:
    """Return an object's id."""
    return source_of(found).moid


def climb(found: K, above: Callable[[K], K | None]) -> Iterator[K]:
    """Yield an object and those above it, the nearest first; `vcenter.unexpected-output` when they form a circle."""
    met: set[K] = set()
    each: K | None = found
    while each is not None:
        if each in met:
            raise unexpected_answer(f"vCenter has `{each}` as a parent of itself", str(each))
        met.add(each)
        yield each
        each = above(each)


def managed_object(session: Session, kind: str, moid: str) -> Any:
    """Return a handle on an object; nothing is called."""
    return _types.GetVmodlType(kind)(moid, session.stub)
