"""Work in threads that an interrupt does not wait for."""

from __future__ import annotations

import subprocess
import sys
from threading import Barrier, current_thread

import pytest

from vsphere_ml.ssh.threads import run_at_once

# An interrupt while one thing never ends: it must come through, begin nothing new, and let the process end.
STUCK = """
import os, signal, threading
from vsphere_ml.ssh.threads import run_at_once
begun = []
def work(thing):
    begun.append(thing)
    os.kill(os.getpid(), signal.SIGINT)
    threading.Event().wait()
try:
    run_at_once([1, 2, 3], work, 1)
except KeyboardInterrupt:
    print("interrupted", begun)
"""


def test_results_come_in_the_order_of_the_things() -> None:
    assert run_at_once(range(50), lambda thing: thing * 2, 8) == [thing * 2 for thing in range(50)]
    assert run_at_once([], str, 8) == []


def test_as_many_as_allowed_run_at_once() -> None:
    together = Barrier(4)

    def work(_thing: int) -> str:
        together.wait(timeout=300)  # broken unless four arrive
        return current_thread().name

    assert len(set(run_at_once(range(4), work, 4))) == 4
    assert len(set(run_at_once(range(4), lambda _thing: current_thread().name, 1))) == 1


def test_what_the_work_raises_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        run_at_once([1, 0], lambda thing: 1 / thing, 2)


def test_an_interrupt_waits_for_nothing() -> None:
    ended = subprocess.run([sys.executable, "-c", STUCK], capture_output=True, text=True, check=False, timeout=300)
    assert (ended.returncode, ended.stdout) == (0, "interrupted [1]\n"), ended.stderr
