"""Which steps of a playbook are meant: all, some by name, or all from one on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.core.model.guest import Playbook


def select_steps(playbook: Playbook, steps: Sequence[str] = (), from_step: str | None = None) -> Playbook:
    """Return the playbook with the chosen steps alone, by number (counted from 1), kind or title; what both allow.

    ConfigError `guest.unknown-step` for a name of none.
    """
    first = min(_places(playbook, from_step)) if from_step is not None else 0
    places = {at for name in steps for at in _places(playbook, name)} if steps else None
    chosen = (step for at, step in enumerate(playbook.steps) if at >= first and (places is None or at in places))
    return replace(playbook, steps=tuple(chosen))


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
