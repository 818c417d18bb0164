"""A script against the seven steps."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from vsphere_ml.bench.porting import guard, places, setup, training
from vsphere_ml.bench.porting.script import parse
from vsphere_ml.bench.porting.steps import PortingState
from vsphere_ml.core.errors import BenchError
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from vsphere_ml.bench.porting.steps import FoundStep

NEWEST_KERAS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PortingCheck:
    """What a script does about each of the seven steps, in their order."""

    file: str
    keras: int  # the major version that was held to be in the guests
    found: tuple[FoundStep, ...]

    @property
    def is_complete(self) -> bool:
        """Whether nothing is missing and nothing wrong."""
        return all(each.state in {PortingState.FOUND, PortingState.NOT_NEEDED} for each in self.found)


def check(content: bytes, file: str, *, keras: int = NEWEST_KERAS) -> PortingCheck:
    """Return what the script does about each step; raises ConfigError with file and line when it is no Python.

    `keras` is the major version in the guests; a script that asks for Keras 2 itself is held to get it.
    """
    script = parse(content, file)
    keras = 2 if places.wants_legacy_keras(script) else keras
    keras3 = keras >= NEWEST_KERAS
    found = (
        setup.init(script),
        setup.pin(script),
        setup.scale(script),
        setup.shard(script),
        training.wrap(script, keras3=keras3),
        training.broadcast(script, keras3=keras3),
        guard.guard(script),
    )
    return PortingCheck(file=file, keras=keras, found=found)


def incomplete_error(ported: PortingCheck) -> BenchError | None:
    """Return the error of a script that would not train, or not as one; None when every step is there."""
    if ported.is_complete:
        return None
    bad = [each for each in ported.found if each.state in {PortingState.MISSING, PortingState.WRONG}]
    numbers = ", ".join(str(each.step.number) for each in bad)
    return BenchError(
        f"{ported.file} is not ported to Horovod: {'step' if len(bad) == 1 else 'steps'} {numbers}",
        code="bench.not-ported",
        target=ported.file,
        hint=f"`vsml port {shlex.quote(ported.file)}` shows the edits",
    )
