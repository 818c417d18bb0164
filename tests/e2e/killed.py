"""Runs `vsml` and kills it in its midst, as `kill -9` does: python -m tests.e2e.killed begin|end KIND WORD...

KIND is a kind of change, to a VM, a site or a host: the process is gone when the first of that kind is about to begin,
or has just ended.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from vsphere_ml.cli import app
from vsphere_ml.cli.wiring.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def kill_at(moment: str, kind: str) -> None:
    """Let this process be killed at that moment: the journal hears of changes right before and after them."""
    told: Callable[..., Any] = getattr(Journal, moment)

    def tell(journal: Journal, about: Iterable[Any], **how: bool) -> Any:
        changes = tuple(about)
        meant = [at for at, each in enumerate(changes) if kind in _kinds(each)]
        if meant and moment == "begin":
            _kill()
        answer = told(journal, changes[: meant[0] + 1] if meant else changes, **how)
        if meant:
            _kill()
        return answer

    setattr(Journal, moment, tell)


def _kinds(each: object) -> set[str]:
    """Return the kind of a change; of one that ended, which comes with its number and error, it is one of several."""
    return {type(part).__name__ for part in (each if isinstance(each, tuple) else (each,))}


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    kill_at(sys.argv[1], sys.argv[2])
    sys.exit(app.run(sys.argv[3:]))
