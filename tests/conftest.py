"""What every test needs: a Ctrl-C that works, also where the run itself was started in the background."""

from __future__ import annotations

import signal

# A shell starts background jobs with SIGINT ignored, and so would be every process that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
