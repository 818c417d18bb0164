"""pyvmomi's end of the wire, in memory: objects are properties, methods are functions.

The stub is faked, not the types: each request is serialised as for a real server of that version, so pyvmomi's own
checks hold, and what an older version silently drops is missing in `sent` as it would be on the wire.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias

from pyVmomi import vim, vmodl
from pyVmomi.SoapAdapter import SoapStubAdapterBase

if TYPE_CHECKING:
    from collections.abc import Iterable

Answer: TypeAlias = Callable[..., Any]
_P: Any = vmodl.query.PropertyCollector
_VERSION = "vim.version.v{}"


class Stub(SoapStubAdapterBase):
    """Answers property reads from `objects`, other calls from `answers`, by method name; anything else is a failure."""

    def __init__(self, api_version: str = "8.0.3.0", page: int = 1000) -> None:
        super().__init__(version=_VERSION.format(api_version.replace(".", "_")))
        self.requestContext = self.samlToken = None  # SerializeRequest asks for them
        self.page = page
        self.objects: dict[str, tuple[Any, dict[str, Any]]] = {}
        self.answers: dict[str, Answer] = {}
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.sent: list[str] = []
        self._rest: list[Any] = []

    def add(self, kind: Any, moid: str, props: Mapping[str, Any]) -> Any:
        """Put an object into the inventory and return a handle on it."""
        found = kind(moid, self)
        self.objects[moid] = (found, {path: _typed(value) for path, value in props.items()})
        return found

    def answer(self, method: str, answer: Answer) -> None:
        self.answers[method] = answer

    def called(self, method: str) -> list[tuple[Any, ...]]:
        """Return the arguments of each call of a method."""
        return [arguments for name, arguments in self.calls if name == method]

    def InvokeMethod(self, mo: Any, info: Any, args: tuple[Any, ...]) -> Any:  # noqa: N802 - pyvmomi calls it so
        self.sent.append(self.SerializeRequest(mo, info, args).decode())
        name = info.wsdlName
        self.calls.append((name, args))
        if name in self.answers:
            return self.answers[name](*args)
        own = getattr(self, f"_{name}", None)
        assert own is not None, f"the stub has no answer to {name}"
        return own(*args)

    def _CreateContainerView(self, _container: Any, kinds: list[Any], _recursive: bool) -> Any:  # noqa: FBT001, N802
        self._kinds = tuple(kinds)
        return vim.view.ContainerView("view-1", self)

    def _DestroyView(self) -> None:  # noqa: N802
        self._kinds = ()

    def _RetrievePropertiesEx(self, specs: list[Any], _options: Any) -> Any:  # noqa: N802
        (spec,) = specs
        starts = [each.obj for each in spec.objectSet]
        if isinstance(starts[0], vim.view.ContainerView):
            starts = [found for found, _ in self.objects.values() if isinstance(found, self._kinds)]
        rows = (self._row(each, spec.propSet) for each in starts)
        self._rest = [row for row in rows if row is not None]
        return self._next_page()

    def _ContinueRetrievePropertiesEx(self, token: str) -> Any:  # noqa: N802
        assert token == "more"
        return self._next_page()

    def _next_page(self) -> Any:
        now, self._rest = self._rest[: self.page], self._rest[self.page :]
        return _P.RetrieveResult(objects=now, token="more" if self._rest else None)

    def _row(self, found: Any, wanted: Iterable[Any]) -> Any:
        if found._moId not in self.objects:
            return None
        handle, props = self.objects[found._moId]
        paths = {path for each in wanted if isinstance(handle, each.type) for path in each.pathSet}
        values = [vmodl.DynamicProperty(name=path, val=props[path]) for path in sorted(paths) if path in props]
        return _P.ObjectContent(obj=handle, propSet=values)


def _typed(value: Any) -> Any:
    """Return a list as pyvmomi's array of its first element's type."""
    return value[0].Array(value) if isinstance(value, list) and value else value


def session(stub: Stub) -> Any:
    """Return as much of a session as what is read over it needs."""
    managers = {
        "propertyCollector": _P("propertyCollector", stub),
        "viewManager": vim.view.ViewManager("ViewManager", stub),
        "customFieldsManager": vim.CustomFieldsManager("CustomFieldsManager", stub),
        "rootFolder": vim.Folder("group-d1", stub),
    }
    return SimpleNamespace(stub=stub, content=SimpleNamespace(**managers), read=_once, write=_once, name="vc")


def _once(call: Callable[[], Any]) -> Any:
    return call()
