"""A TrainJob as the rules ask about it: trainer.kubeflow.org/v1alpha1, as of Kubeflow Trainer v2.

What it does not say, its runtime does, which is another object: a rule speaks only of what the job itself has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vsphere_ml.kubernetes.commands import count_ranks, read_words
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from vsphere_ml.kubernetes.manifest import Manifest, Path

API_VERSION = "trainer.kubeflow.org/v1alpha1"
SPEC: Path = ("spec",)
TRAINER: Path = ("spec", "trainer")
RESOURCES: Path = (*TRAINER, "resourcesPerNode")


@dataclass(frozen=True, slots=True)
class TrainJob:
    """A manifest of that kind."""

    manifest: Manifest

    def number(self, name: str) -> int | None:
        """Return a number of the trainer; None where none is written."""
        asked = self.manifest.get(*TRAINER, name)
        return asked if isinstance(asked, int) and not isinstance(asked, bool) else None

    @property
    def resources(self) -> dict[str, Any]:
        """Return what a node asks for: its limits, else its requests."""
        return {**self.manifest.mapping(*RESOURCES, "requests"), **self.manifest.mapping(*RESOURCES, "limits")}

    @property
    def command(self) -> list[str]:
        """Return the words that the trainer runs; those of a script are taken apart as a shell does."""
        return read_words(self.manifest.get(*TRAINER, "command"), self.manifest.get(*TRAINER, "args"))

    def ranks_asked(self) -> int | None:
        """Return how many ranks the command starts by MPI, where it says so by a number."""
        return count_ranks(self.command)
