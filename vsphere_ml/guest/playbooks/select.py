"""Which steps of a playbook are meant: all, some by name, or all from one on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import ConfigError

if TYPE_CHECKING:
    from vsphere_ml.core.model.guest import Playbook, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Steps by number (counted from 1), kind or title. With both fields, what both allow."""

    steps: tuple[str, ...] = ()
    from_step: str | None = None

    def of(self, playbook: Playbook) -> tuple[Step, ...]:
        """Return the chosen steps in the playbook's order; ConfigError `guest.unknown-step` for a name of none."""
        first = min(_places(playbook, self.from_step)) if self.from_step is not None else 0
        places = {at for name in self.steps for at in _places(playbook, name)} if self.steps else None
        return tuple(step for at, step in enumerate(playbook.steps) if at >= first and (places is None or at in places))


def _places(playbook: Playbook, name: str) -> tuple[int, ...]:
    found = tuple(at for at, step in enumerate(playbook.steps) if name in (str(at + 1), step.KIND, step.title))
    if not found:
        raise ConfigError(
            f"playbook {playbook.name} has no step `{name}`",
            code="guest.unknown-step",
            target=name,
            hint="name one of " + ", ".join(f"{at}: {step.title}" for at, step in enumerate(playbook.steps, 1)),
        )
    return found
