"""What a cluster's playbooks want that can be seen of a finished node."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from vsphere_ml.guest.steps.mpi.containers import ContainerSshd
from vsphere_ml.guest.steps.mpi.mesh import SshMesh
from vsphere_ml.guest.steps.network.roce import NetplanRoce
from vsphere_ml.guest.steps.system.dataset import Dataset
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from vsphere_ml.core.model.guest import Playbook, Step

S = TypeVar("S")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedSteps:
    """The last step of each kind, and every dataset. Mesh and RoCE interface are wanted of every cluster."""

    mesh: SshMesh
    roce: NetplanRoce
    container: ContainerSshd | None
    datasets: tuple[Dataset, ...] = ()


def wanted_by_playbooks(playbooks: Iterable[Playbook]) -> ExpectedSteps:
    """Return what these playbooks want."""
    steps = [step for book in playbooks for step in book.steps]
    return ExpectedSteps(
        mesh=_last_of_kind(SshMesh, steps) or SshMesh(),
        roce=_last_of_kind(NetplanRoce, steps) or NetplanRoce(),
        container=_last_of_kind(ContainerSshd, steps),
        datasets=tuple(step for step in steps if isinstance(step, Dataset)),
    )


def _last_of_kind(kind: type[S], steps: Sequence[Step]) -> S | None:
    return next((step for step in reversed(steps) if isinstance(step, kind)), None)
