"""What a command of `vsml job` was given, for the commands that its hints name."""

from __future__ import annotations

from vsphere_ml.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenOptions:
    """Options by which other commands find the same nodes and jobs, each with a blank after it."""

    file: str = ""  # the cluster file, for every command
    place: str = ""  # where jobs run, for those of `vsml job`

    @property
    def of_job(self) -> str:
        """Return the options of a command of `vsml job`."""
        return self.file + self.place
