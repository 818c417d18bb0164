"""lightkube behind the port `KubernetesApi`: plain mappings in and out, and errors as vsml's."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx2
from lightkube import ApiError, Client, codecs
from lightkube.generic_resource import create_global_resource, create_namespaced_resource
from lightkube.resources.apiextensions_v1 import CustomResourceDefinition
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.coordination_v1 import Lease
from lightkube.resources.core_v1 import ConfigMap, Event, Namespace, Node, Pod
from lightkube.types import CascadeType

from vsphere_ml.core.errors import NotPossible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vsphere_ml.core.ports.kubernetes import ApiObject, ObjectRef

FIELD_MANAGER = "vsml"
NOT_FOUND = 404
_RESOURCES: Mapping[str, Any] = {
    "ClusterPolicy": create_global_resource("nvidia.com", "v1", "ClusterPolicy", "clusterpolicies"),
    "ConfigMap": ConfigMap,
    "CustomResourceDefinition": CustomResourceDefinition,
    "Deployment": Deployment,
    "Event": Event,
    "Lease": Lease,
    "MPIJob": create_namespaced_resource("kubeflow.org", "v2beta1", "MPIJob", "mpijobs"),
    "Namespace": Namespace,
    "NicClusterPolicy": create_global_resource("mellanox.com", "v1alpha1", "NicClusterPolicy", "nicclusterpolicies"),
    "Node": Node,
    "Pod": Pod,
}
_WITHOUT_NAMESPACE = frozenset({"ClusterPolicy", "CustomResourceDefinition", "Namespace", "NicClusterPolicy", "Node"})


class LightkubeApi:
    """The API server that a kubeconfig names."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @property
    def server(self) -> str:
        return str(self._client.config.cluster.server)

    def apply(self, manifest: ApiObject) -> ApiObject:
        with self._as_errors(f"apply {manifest['kind']} {manifest['metadata']['name']}"):
            return _as_mapping(self._client.apply(codecs.from_dict(dict(manifest)), field_manager=FIELD_MANAGER))

    def read(self, ref: ObjectRef) -> ApiObject | None:
        with self._as_errors(f"get {ref.kind} {ref.name}"):
            try:
                return _as_mapping(self._client.get(_RESOURCES[ref.kind], ref.name, **_where(ref)))
            except ApiError as error:
                if error.status.code == NOT_FOUND:
                    return None
                raise

    def list(self, kind: str, namespace: str = "", labels: Mapping[str, str] | None = None) -> tuple[ApiObject, ...]:
        where: dict[str, Any] = {} if kind in _WITHOUT_NAMESPACE else {"namespace": namespace or "*"}
        with self._as_errors(f"list {kind}"):
            found = self._client.list(_RESOURCES[kind], labels={**(labels or {})}, **where)
            return tuple(_as_mapping(each) for each in found)

    def delete(self, ref: ObjectRef) -> bool:
        with self._as_errors(f"delete {ref.kind} {ref.name}"):
            try:
                self._client.delete(_RESOURCES[ref.kind], ref.name, cascade=CascadeType.BACKGROUND, **_where(ref))
            except ApiError as error:
                if error.status.code == NOT_FOUND:
                    return False
                raise
        return True

    def read_log(self, namespace: str, pod: str, container: str) -> str:
        with self._as_errors(f"get the log of {pod}"):
            return "".join(self._client.log(pod, namespace=namespace, container=container))

    @contextmanager
    def _as_errors(self, what: str) -> Iterator[None]:
        """Raise what goes wrong in here as NotPossible."""
        try:
            yield
        except ApiError as error:
            raise NotPossible(
                f"the API server refuses to {what}: {error.status.message}",
                code="kubernetes.refused",
                target=self.server,
                hint="`kubectl auth whoami` tells whom the kubeconfig signs in",
            ) from error
        except httpx2.HTTPError as error:
            raise NotPossible(
                f"{self.server} does not answer: {str(error) or type(error).__name__}",
                code="kubernetes.unreachable",
                target=self.server,
                hint="`kubectl version` with the same KUBECONFIG",
            ) from error


def _where(ref: ObjectRef) -> dict[str, Any]:
    return {} if ref.kind in _WITHOUT_NAMESPACE else {"namespace": ref.namespace}


def _as_mapping(found: Any) -> dict[str, Any]:
    made: dict[str, Any] = found.to_dict()
    return made
