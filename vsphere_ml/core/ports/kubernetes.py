"""The protocol between flows and a Kubernetes API server. Objects are mappings, as their manifests are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

ApiObject: TypeAlias = "Mapping[str, Any]"


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """One object: its kind, its namespace (empty for what lies in none), and its name."""

    kind: str
    namespace: str
    name: str


class KubernetesApi(Protocol):
    """An API server. Calls raise NotPossible: `kubernetes.unreachable`, or `kubernetes.refused` with its words."""

    @property
    def server(self) -> str:
        """Return its address."""
        ...

    def apply(self, manifest: ApiObject) -> ApiObject:
        """Apply an object server-side, as its field manager `vsml`, and return it as it is now."""
        ...

    def read(self, ref: ObjectRef) -> ApiObject | None:
        """Return an object; None when there is none of this name."""
        ...

    def list(self, kind: str, namespace: str = "", labels: Mapping[str, str] | None = None) -> tuple[ApiObject, ...]:
        """Return all objects of a kind with these labels, of all namespaces where none is named."""
        ...

    def delete(self, ref: ObjectRef) -> bool:
        """Delete an object and all that it owns; return whether it was there."""
        ...

    def read_log(self, namespace: str, pod: str, container: str) -> str:
        """Return what a container has printed so far."""
        ...
