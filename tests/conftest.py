"""What every test needs: a Ctrl-C that works also in the background, and examples that may take their time."""

from __future__ import annotations

import signal

from hypothesis import settings

# A shell starts background jobs with SIGINT ignored, and so would be every process that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says more about the machine's load than about the code.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
