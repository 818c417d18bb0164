"""Lines that a log service keeps inside something else: taken out where that is known, refused where it is not."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST = 1 << 20  # characters; a longer line is a document of its own
# Docker's json-file driver, journalctl -o json, Loki, Google Cloud, and what loggers that write JSON call it.
_TEXT_KEYS = ("log", "MESSAGE", "line", "textPayload", "message", "msg")
# What every output of a tool has, and has at the beginning of a line.
_TITLES = re.compile(
    r"#\s+nThread \d|#\s+(?:size|bytes)\s+(?:count|N)\s+type|# OSU |#bytes\s+#iterations|\[ ID\] Interval"
)
_RESULTS = re.compile(r"Img/sec per [CG]PU: ?\d|Img/sec/[CG]PU: ?\d|total images/sec: ?\d|iperf Done")
_SHOWN = 40  # characters of what stands before


def find_wrapped_text(line: str) -> str | None:
    """Return the text that one line of JSON holds for a program's line; None where it is not such a line."""
    if not line.startswith("{") or not line.endswith("}") or len(line) > LONGEST:
        return None
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return None
    texts = (document.get(key) for key in _TEXT_KEYS)
    return next((each for each in texts if isinstance(each, str)), None)


def wrapper_error(lines: Iterable[str], name: str, *, titles_only: bool = False) -> ConfigError | None:
    """Return that something unknown stands before the lines of a known tool; None where nothing does.

    Where its titles have nothing before them, or only its results were found and `titles_only` is asked about, nothing
    does: a tool's words can be quoted anywhere.
    """
    found = [(line, match) for line in lines if (match := _TITLES.search(line))]
    if not found and not titles_only:
        found = [(line, match) for line in lines if (match := _RESULTS.search(line))]
    before = [line[: match.start()].strip() for line, match in found]
    if not before or not all(before):
        return None
    return ConfigError(
        f"{name} has something before each line that is not known: {before[0][-_SHOWN:]}",
        code="import.wrapped",
        target=name,
        hint="give the program's own lines, as kubectl logs, docker logs or journalctl -o cat write them",
    )
