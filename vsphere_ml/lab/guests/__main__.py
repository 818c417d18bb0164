"""The lab vCenter's power hook: `python -m vsphere_ml.lab.guests HOME`, an event on standard input."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from vsphere_ml.core.errors import VsmlError
from vsphere_ml.lab.guests import needs
from vsphere_ml.lab.guests.boot import hook


def main() -> int:
    """Return 0 when the event was followed; one line on standard error otherwise."""
    try:
        needs.check()
        hook.follow(json.load(sys.stdin), Path(sys.argv[1]), sys.stdout)
    except VsmlError as error:
        sys.stderr.write(f"{error.message} {'; '.join(error.details)}\n")
        return error.status
    except KeyboardInterrupt:  # the lab ends
        return 130
    except (OSError, ValueError, KeyError) as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
