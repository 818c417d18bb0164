"""What launchers and log collectors put before each line of a program's output.

All readers see lines without it, so that a log reads the same however it was collected.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_ANSI = re.compile(r"\x1b(?:_[^\x07\x1b]*(?:\x07|\x1b\\)|\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
# Open MPI's --tag-output, PRRTE's with the name of the job or host and process, Horovod's Gloo launcher's without,
# SageMaker's with a host.
_TAG = re.compile(r"\[(?:[\w.@-]+@)?\d+(?:,\d+|,mpirank:\d+,[\w.-]+)?\](?:\[[\w.-]+:\d+\])?<std(?:out|err|diag)>: ?")
_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d+)?"
_DATE = r"(?:\d\d)?\d\d[-/]\d\d[-/]\d\d"
_ZONE = r"(?:Z| [A-Z]{3,4}(?=\s|\])|\s?[+-]\d\d:?\d\d)"
_KNOWN = re.compile(
    "|".join(
        (
            _TAG.pattern,
            r"(?:> ?)+(?=\s*\S)",  # quoted in a mail or an issue
            # Open MPI's --timestamp-output, by ctime
            rf"[A-Z][a-z]{{2}},? [A-Z][a-z]{{2}} [ \d]?\d {_CLOCK} \d{{4}}(?:<std(?:out|err)>:)?\s?",
            # syslog's, and ts's; without a year, which would be a message size
            rf"(?:[A-Z][a-z]{{2}},? )?[A-Z][a-z]{{2}} [ \d]?\d {_CLOCK}(?:<std(?:out|err)>:)?\s?",
            r"<\d{1,3}>(?=[A-Z][a-z]{2} )",  # syslog's priority
            # RFC 5424
            r"<\d{1,3}>1 \d{4}-\d\d-\d\dT\S+ \S+ \S+ \S+ \S+ (?:-|(?:\[(?:[^\]\"]|\"(?:[^\"\\]|\\.)*\")*\])+)(?:\s|$)",
            r"[^\t]+\t[^\t]+\t(?=\d{4}-\d\d-\d\dT)",  # gh run view --log: job and step
            # RFC 3339 (kubectl --timestamps, journald) and what most loggers make of it
            rf"\[?(?:[A-Z][a-z]{{2}} )?{_DATE}(?:T|,? ){_CLOCK}{_ZONE}?\]?[:,]?(?:\s|$|(?=\[))",
            rf"\[?{_CLOCK}\]?(?:\s|$)",
            r"\[ *\d+\.\d{3,}s?\](?:\s|$)",  # seconds since the start: the kernel's, journald's, flux's
            r"\d{10}\.\d{3,9}(?:\s|$)",  # seconds since 1970
            r"\d\d[OE][ +]",  # GitLab's, after the time
            r"_bk;t=\d+\x07",  # Buildkite's
            r"std(?:out|err) F(?:\s|$)",  # container runtimes' files, after the time
            r"\d{1,6}:(?:\s|$)",  # srun --label
            r"\[(?:[a-z]+[-_]?\d+|PE_\d+)\]:",  # torchrun, by role; ALPS
            r"\[rank\d+\]",
            r"\[\d+\](?::\s?|\s|$)",  # Hydra's -prepend-rank, MVAPICH2's
            r"\[NID \d+\](?:\s|$)",  # aprun
            r"\d{1,3}(?:\.\d{1,3}){3}:(?:\s|$)",  # pdsh, of addresses
            r"\[pod/[^\]\s]+\](?:\s|$)",  # kubectl logs --prefix
            r"\[(?=[^\]]*[a-z])[\w.@:-]+(?: [\w.-]+)?\](?:\s|$)",  # kubetail, and hosts in brackets
            r"[+-] \S+ › \S+\s*$",  # stern says which containers it follows
            r"[IWEF](?:\d{4})?\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [\w./-]+:\d+\](?:\s|$)",  # glog, klog, absl
            r"\{[\w.]+:\d+\}(?:\s|$)",  # Airflow
            r"(?:- )?(?:[\w.]+ - )?(?:INFO|WARNING|DEBUG)(?::[\w.]+:\s?|(?::| -)?(?:\s|$))",  # Python's logging
            r"\| (?:TRACE|DEBUG|INFO|SUCCESS|WARNING|ERROR) +\| [\w.<>]+:[\w.<>]+:\d+ - ",  # loguru
            r"\[(?:debug|info|warning|error|INFO|WARN) *\](?:\s|$)",  # structlog, Nomad
            r"</?(?:pre|code)>",
            r"\((?:[\w.]+ )?pid=\d+(?:, ip=[\d.:a-f]+)?\)(?:\s|$)",  # Ray
            r"[\w.-]*[\w-]\s+\|(?:\s|$)",  # docker compose
            # syslog: host program[pid]:, or the program alone
            r"(?:(?=[\w.-]*[a-z])[\w.-]+ )?(?=[\w./-]*[a-z])[\w./-]+\[\w+(?:\.\d+)?\]:(?:\s|$)",
        )
    )
)
_MOST = 6  # prefixes before one line; kubectl's, a time's and the launcher's are three
_NAMED = re.compile(r"(?P<name>(?=[\w./-]*[A-Za-z])[A-Za-z0-9][\w./-]*)(?P<colon>:)?(?:\s|$)")
_NUMBERED = re.compile(r"\s*(?P<number>\d{1,13})(?:[:\t ]|$)")  # cat -n, nl, grep -n; ts %s, CloudWatch
_SINCE_1970, _UNTIL_2100 = 1.0e9, 4.1e9  # seconds, from 2001 on
_ALL = 0.9  # of the lines have a name before them where a collector put it there
_FEWEST = 4


def strip_prefixes(line: str) -> str:
    """Return a line without terminal codes and without the prefixes that can be recognised by the line itself."""
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


def without_columns(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the lines without what stands before (nearly) every one of them, and could be a figure before one alone.

    That is their number, a time in seconds or milliseconds since 1970, or the name of a node, pod or container: `pdsh`
    and `clush` write `node-1: `, `stern` the pod's and the container's, of all namespaces theirs before.
    """
    return _without_names(_without_numbers(lines))


def _without_numbers(lines: Sequence[str]) -> tuple[str, ...]:
    matches = [_NUMBERED.match(line) for line in lines]
    numbers = [int(match["number"]) for match in matches if match]
    if len(numbers) < max(_FEWEST, _ALL * len(lines)):
        return tuple(lines)
    counted = sum(later - earlier == 1 for earlier, later in pairwise(numbers)) >= _ALL * (len(numbers) - 1)
    if not counted and not all(_SINCE_1970 <= each <= _UNTIL_2100 for each in map(_seconds, numbers)):
        return tuple(lines)
    return tuple(
        strip_prefixes(line[match.end() :]) if match else line for line, match in zip(lines, matches, strict=True)
    )


def _seconds(time: int) -> float:
    return time / 1000 if time > _UNTIL_2100 else time


def _without_names(lines: Sequence[str]) -> tuple[str, ...]:
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
