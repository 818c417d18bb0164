"""Where every run begins: `vsml`, and `python -m vsphere_ml`."""

from __future__ import annotations

import gc
import signal
import sys

# Objects made before the collector looks for cycles. What vsml reads has none, and the types of pyVmomi and of its own
# modules, which stay, were looked through three times in a run: a tenth of it.
_YOUNG = 500_000


def main() -> None:
    """Run the command line. A Ctrl-C while it is still being imported ends it as any other does."""
    gc.set_threshold(_YOUNG)
    try:
        from vsphere_ml.cli.app import main as command_line  # noqa: PLC0415 - half of a short run is this import
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        from vsphere_ml.cli import exits  # noqa: PLC0415

        sys.exit(exits.cut(sys.argv[1:]))
    try:
        command_line()
    finally:
        gc.freeze()  # else the interpreter's end looks through all of pyVmomi's types for cycles: a tenth of a second


if __name__ == "__main__":
    main()
