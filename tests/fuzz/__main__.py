"""`make fuzz`: every target for FUZZ_SECONDS, one after another; the inputs tried of each, and their sum."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from random import SystemRandom

from tests.fuzz import TARGETS


def main() -> int:
    seconds = float(os.environ.get("FUZZ_SECONDS", "60"))
    seed = int(os.environ.get("FUZZ_SEED") or SystemRandom().randrange(1 << 32))
    only = sys.argv[1:] or list(TARGETS)
    total = 0
    for name in only:
        count = import_module(f"tests.fuzz.{name}").run(seconds, seed)
        total += count
        sys.stdout.write(f"{name:12} {count:9,} inputs, seed {seed}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{'together':12} {total:9,} inputs without a traceback\n")
    return 0 if total else 1


if __name__ == "__main__":
    sys.exit(main())
