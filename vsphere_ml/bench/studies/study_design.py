"""What a study is: which launches stand side by side, and what its columns differ in."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.bench.launch.matrix import at_level, expand
from vsphere_ml.bench.model.record import Configuration, Workload
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from vsphere_ml.bench.launch.matrix import BenchSpec
    from vsphere_ml.bench.probe.survey import Surveyed
    from vsphere_ml.core.model.spec import ClusterSpec

STACK = "STACK"


@dataclass(frozen=True, slots=True, kw_only=True)
class _StudyAxis:
    """What the columns of a study differ in; the first of `values` is what the others are compared with."""

    title: str
    values: tuple[str, ...]
    read: Callable[[Configuration], str]
    drop: Callable[[Configuration], Configuration]  # what is equal in cells of one row


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """A state of hosts or VMs that a study compares, and that vsml only finds: somebody else changes it in between.

    It is an option of each configuration, by which launches of an earlier state are found again.
    """

    option: str
    title: str
    levels: tuple[str, ...]  # the first is what the others are compared with
    find_level: Callable[[ClusterSpec, Sequence[Surveyed]], str]  # empty where unknown
    unknown: tuple[str, str]  # why it is unknown, and a hint
    change: Mapping[str, str]  # by level, what brings the nodes to it; {file} is the cluster file

    @property
    def axis(self) -> _StudyAxis:
        return _StudyAxis(
            title=self.title,
            values=self.levels,
            read=lambda asked: asked.options.get(self.option, ""),
            drop=lambda asked: without_options(asked, self.option),
        )

    def level(self, spec: ClusterSpec, surveyed: Sequence[Surveyed]) -> str:
        """Return the level that the nodes are at; NotPossible `bench.no-condition` where it is unknown."""
        found = self.find_level(spec, surveyed)
        if not found:
            why, hint = self.unknown
            raise NotPossible(why, code="bench.no-condition", target=spec.name, hint=hint)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyDesign:
    """A study. Everything is crossed with everything by `matrix.expand`, as in any benchmark."""

    name: str
    question: str
    transports: tuple[Transport, ...] = (Transport.TCP,)
    stacks: tuple[tuple[str, str], ...] = ()  # launchers and backends
    factor: Factor | None = None
    workloads: tuple[Workload, ...] = (Workload.TRAIN,)  # where nobody names others
    launcher: str = ""  # where nobody names another
    caveats: tuple[str, ...] = ()  # what its figures do not say

    @property
    def axis(self) -> _StudyAxis:
        """What its columns are: states of hosts and VMs, stacks, or transports."""
        if self.factor is not None:
            return self.factor.axis
        return _stacks(self.stacks) if self.stacks else TRANSPORTS

    def cells(self, spec: BenchSpec) -> tuple[Configuration, ...]:
        """Return every configuration of the study, also those that the nodes cannot be launched in now."""
        factor = self.factor
        if factor is None:
            return expand(spec)
        return tuple(each for level in factor.levels for each in expand(at_level(spec, factor.option, level)))


def without_options(asked: Configuration, *names: str) -> Configuration:
    """Return the configuration without these options."""
    return replace(asked, options={key: value for key, value in asked.options.items() if key not in names})


TRANSPORTS = _StudyAxis(
    title="TRANSPORT",
    values=tuple(each.value for each in Transport),
    read=lambda asked: asked.transport.value,
    drop=lambda asked: replace(asked, transport=Transport.TCP),
)


def _stacks(stacks: Sequence[tuple[str, str]]) -> _StudyAxis:
    return _StudyAxis(
        title=STACK,
        values=tuple(f"{launcher}/{backend}" for launcher, backend in stacks),
        read=lambda asked: f"{asked.launcher}/{asked.backend}",
        drop=lambda asked: replace(without_options(asked, "mpi"), launcher="", backend=""),
    )
