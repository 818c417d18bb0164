"""DCGM exporter: what GPUs do, for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from vsphere_ml.core.catalog.exporters import EXPORTERS, ScrapeJob
from vsphere_ml.core.model.guest import Step, StepNeed
from vsphere_ml.guest.playbooks.fields import FieldError, FileSource
from vsphere_ml.guest.steps.system.packages import AptRepository, missing_packages, packages_question
from vsphere_ml.guest.steps.system.services import Service
from vsphere_ml.guest.steps.system.shell import install
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.core.model.guest import CommandAnswer, GuestFacts, Shell

DCGM = EXPORTERS[ScrapeJob.DCGM]
_LISTENS = f"ss -Hltn 'sport = :{DCGM.port}' | grep -q ."
_SERVICE = Service(name=DCGM.unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class DcgmExporter(Step):
    """NVIDIA's DCGM exporter from a CUDA repository, listening. Without `url`, or in a guest without GPUs: nothing.

    Package and service: https://docs.nvidia.com/datacenter/dcgm/latest/installation/install-dcgm-exporter.html.
    """

    KIND: ClassVar[str] = "dcgm_exporter"
    AFTER_REBOOT: ClassVar[bool] = True

    url: str = ""
    suite: str = "/"
    key: FileSource = FileSource("")
    key_sha256: str = ""
    trusted: bool = False
    wait_s: int = 60

    def __post_init__(self) -> None:
        if self.wait_s < 0:
            raise FieldError("wait_s", "must not be negative")
        if self.url:
            _ = self._repository  # which refuses what cannot be meant

    @property
    def title(self) -> str:
        return DCGM.title

    @property
    def names(self) -> tuple[str, ...]:
        """Return the packages that it installs in guests with GPUs."""
        return (DCGM.package,) if self.url else ()

    def probes(self, facts: GuestFacts) -> Mapping[str, str]:
        if not self._is_wanted(facts):
            return {}
        asked = {"installed": packages_question(self.names), "listens": _LISTENS}
        return {**self._repository.probes(facts), **_SERVICE.probes(facts), **asked}

    def drift(self, seen: Mapping[str, CommandAnswer], facts: GuestFacts) -> str | None:
        if not self._is_wanted(facts):
            return None
        if drift := self._repository.drift(seen, facts):
            return drift
        if missing_packages(self.names, seen["installed"]):
            return f"{DCGM.package} is not installed"
        if drift := _SERVICE.drift(seen, facts):
            return drift
        return None if seen["listens"].ok else f"{DCGM.title} does not listen on port {DCGM.port}"

    def apply(self, shell: Shell, facts: GuestFacts) -> StepNeed:
        if self._is_wanted(facts):
            self._repository.apply(shell, facts)
            install(shell, self.names, facts)
            _SERVICE.apply(shell, facts)
            shell.run(f"i=0; until {_LISTENS}; do i=$((i + 1)); test $i -le {self.wait_s} || break; sleep 1; done")
        return StepNeed.NOTHING

    def _is_wanted(self, facts: GuestFacts) -> bool:
        return bool(self.url) and facts.gpus > 0

    @property
    def _repository(self) -> AptRepository:
        return AptRepository(
            name="cuda",
            url=self.url,
            suite=self.suite,
            key=self.key,
            key_sha256=self.key_sha256,
            trusted=self.trusted,
        )
