"""What launchers and log collectors put before each line of a program's output.

All readers see lines without it, so that a log reads the same however it was collected.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
# Open MPI's --tag-output, PRRTE's with the name of the job, Horovod's Gloo launcher's without, SageMaker's with a host.
_TAG = re.compile(r"\[(?:[\w.@-]+@)?\d+(?:,\d+|,mpirank:\d+,[\w.-]+)?\]<std(?:out|err|diag)>: ?")
_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d+)?"
_KNOWN = re.compile(
    "|".join(
        (
            _TAG.pattern,
            r"(?:> ?)+(?=\s*\S)",  # quoted in a mail or an issue
            # Open MPI's --timestamp-output, and syslog's
            rf"(?:[A-Z][a-z]{{2}},? )?[A-Z][a-z]{{2}} [ \d]?\d {_CLOCK}(?: \d{{4}})?(?:<std(?:out|err)>:)?\s?",
            # RFC 3339 (kubectl --timestamps, journald) and what most loggers make of it
            rf"\[?\d{{4}}[-/]\d\d[-/]\d\d(?:T|,? ){_CLOCK}(?:Z| UTC|\s?[+-]\d\d:?\d\d)?\]?[:,]?(?:\s|$)",
            rf"\[?{_CLOCK}\]?(?:\s|$)",
            r"std(?:out|err) F(?:\s|$)",  # container runtimes' files, after the time
            r"\d{1,6}:(?:\s|$)",  # srun --label
            r"\[(?:rank|default|worker[-_]?)\d+\]:?",  # torchrun
            r"\[\d+\]:?(?:\s|$)",  # Hydra's -prepend-rank
            r"\[pod/[^\]\s]+\](?:\s|$)",  # kubectl logs --prefix
            r"\[(?=[^\]]*[a-z])[\w.@:-]+(?: [\w.-]+)?\](?:\s|$)",  # kubetail, and hosts in brackets
            r"[+-] \S+ › \S+\s*$",  # stern says which containers it follows
            r"[IWEF](?:\d{4})?\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [\w./-]+:\d+\](?:\s|$)",  # glog, klog, absl
            r"\{[\w.]+:\d+\}(?:\s|$)",  # Airflow
            r"(?:- )?(?:[\w.]+ - )?(?:INFO|WARNING|DEBUG)(?::[\w.]+:\s?|(?::| -)?(?:\s|$))",  # Python's logging
            r"\((?:[\w.]+ )?pid=\d+(?:, ip=[\d.:a-f]+)?\)(?:\s|$)",  # Ray
            r"[\w.-]*[\w-]\s+\|(?:\s|$)",  # docker compose
            r"(?=[\w.-]*[a-z])[\w.-]+ [\w./-]+\[\d+\]:(?:\s|$)",  # syslog: host program[pid]:
        )
    )
)
_MOST = 6  # prefixes before one line; kubectl's, a time's and the launcher's are three
_NAMED = re.compile(r"(?P<name>(?=[\w.-]*[A-Za-z])[A-Za-z0-9][\w.-]*)(?P<colon>:)?(?:\s|$)")
_ALL = 0.9  # of the lines have a name before them where a collector put it there
_FEWEST = 4


def strip_prefixes(line: str) -> str:
    """Return a line without terminal codes and without the prefixes that can be told from the line itself."""
    if "\x1b" in line:
        line = _ANSI.sub("", line)
    for _ in range(_MOST):
        match = _KNOWN.match(line.lstrip())
        if match is None or not match[0]:
            break
        line = line.lstrip()[match.end() :]
        # A tool that writes a row in pieces gets a tag before each of them.
        line = line.replace(match[0].strip(), "") if match[0].startswith("[") else line
    return _TAG.sub("", line) if "]<std" in line else line


def without_names(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the lines without the name of a node, pod or container that stands before (nearly) every one of them.

    `pdsh` and `clush` write `node-1: `, `stern` the pod's and the container's, of all namespaces theirs before.
    """
    found = tuple(lines)
    for _ in range(3):
        names = _names(found)
        if not names:
            return found
        found = tuple(
            strip_prefixes(line[match.end() :]) if (match := _NAMED.match(line)) and match["name"] in names else line
            for line in found
        )
    return found


def _names(lines: Sequence[str]) -> frozenset[str]:
    filled = [line for line in lines if line.strip()]
    seen = [match for line in filled if (match := _NAMED.match(line))]
    counter = Counter(match["name"] for match in seen if _is_name(match))
    words = Counter(match["name"] for match in seen if match["name"].islower())
    often = {name for name, count in counter.items() if count >= max(_FEWEST, len(filled) / 100)}
    for names, counted in ((often, counter), ({name for name, _ in words.most_common(1)}, words)):
        if sum(counted[name] for name in names) >= _ALL * max(len(filled), _FEWEST):
            return frozenset(names)
    return frozenset()


def _is_name(match: re.Match[str]) -> bool:
    """Return whether this can be a host's, pod's or container's name and is no word of the output."""
    return match["colon"] is not None or any(letter in "-.0123456789" for letter in match["name"])
