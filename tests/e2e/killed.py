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
    from collections.abc import Callable


def kill_at(moment: str, kind: str) -> None:
    """Let this process be killed at that moment: the journal hears of every change right before and after it."""
    told: Callable[..., Any] = getattr(Journal, moment)

    def tell(journal: Journal, *about: Any) -> Any:
        meant = any(type(each).__name__ == kind for each in about)
        if meant and moment == "begin":
            _kill()
        answer = told(journal, *about)
        if meant:
            _kill()
        return answer

    setattr(Journal, moment, tell)


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    kill_at(sys.argv[1], sys.argv[2])
    sys.exit(app.run(sys.argv[3:]))
