"""An MPIJob as the rules ask about it: kubeflow.org/v2beta1, as of mpi-operator v0.8.2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vsphere_ml.kubernetes.commands import count_ranks, read_words
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from vsphere_ml.kubernetes.manifest import Manifest, Path

API_VERSION = "kubeflow.org/v2beta1"
LAUNCHER, WORKER = "Launcher", "Worker"
SPEC: Path = ("spec",)
REPLICAS: Path = ("spec", "mpiReplicaSpecs")


@dataclass(frozen=True, slots=True)
class MpiJob:
    """A manifest, read with the defaults of the operator (`pkg/apis/kubeflow/v2beta1/default.go`)."""

    manifest: Manifest

    def has(self, role: str) -> bool:
        return role in self.manifest.mapping(*REPLICAS)

    def replicas(self, role: str) -> int | None:
        """Return how many pods a role has; None where what is written is no number."""
        asked = self.manifest.get(*REPLICAS, role, "replicas")
        if asked is None:
            return 1 if role == LAUNCHER and self.has(role) else 0
        return asked if isinstance(asked, int) and not isinstance(asked, bool) else None

    @property
    def slots(self) -> int | None:
        asked = self.manifest.get("spec", "slotsPerWorker")
        return 1 if asked is None else asked if isinstance(asked, int) and not isinstance(asked, bool) else None

    @property
    def implementation(self) -> str:
        return str(self.manifest.get("spec", "mpiImplementation") or "OpenMPI")

    @property
    def launcher_is_worker(self) -> bool:
        return self.manifest.get("spec", "runLauncherAsWorker") is True

    def container_path(self, role: str) -> Path:
        """Return where the first container of a role stands; the operator treats that one as MPI's."""
        return (*REPLICAS, role, "template", "spec", "containers", 0)

    def resources(self, role: str) -> dict[str, Any]:
        """Return what the first container of a role asks for: its limits, else its requests."""
        path = (*self.container_path(role), "resources")
        return {**self.manifest.mapping(*path, "requests"), **self.manifest.mapping(*path, "limits")}

    def command(self, role: str) -> list[str]:
        """Return the words of what a role's first container runs; those of a script are taken apart as a shell does."""
        path = self.container_path(role)
        return read_words(self.manifest.get(*path, "command"), self.manifest.get(*path, "args"))

    def environment(self, role: str) -> dict[str, str]:
        """Return the variables of a role's first container."""
        entries = self.manifest.get(*self.container_path(role), "env")
        return {
            str(each.get("name")): str(each.get("value") or "")
            for each in (entries if isinstance(entries, list) else ())
            if isinstance(each, dict)
        }

    def ranks_asked(self) -> int | None:
        """Return how many ranks the launcher's command starts, where it says so by a number."""
        return count_ranks(self.command(LAUNCHER))
