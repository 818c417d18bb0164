"""Where every run begins: `vsml`, and `python -m vsphere_ml`."""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Run the command line. A Ctrl-C while it is still being imported ends it as any other does."""
    try:
        from vsphere_ml.cli.app import main as command_line  # noqa: PLC0415 - half of a short run is this import
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        from vsphere_ml.cli import exits  # noqa: PLC0415

        sys.exit(exits.cut(sys.argv[1:]))
    command_line()


if __name__ == "__main__":
    main()
