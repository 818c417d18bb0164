"""Many questions in one round trip: a script for POSIX sh, and the reading of what it printed.

No name and no snippet meets another one's quoting: names stay here, each snippet is one quoted argument of its own
shell, and answers come back by their length. A snippet may exit, fail, read its standard input or be no shell at all.
Answers are gathered in memory (/dev/shm), so that a full disk can still be asked about.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from vsphere_ml.core.guest import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LIMIT = 1 << 20  # bytes of each output that are kept
SNIPPET_S = 60  # a hanging nvidia-smi must not keep the other answers back

_OPEN = """\
export LC_ALL=C
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
umask 077
ulimit -f 131072
d=
for place in /dev/shm /run "${TMPDIR:-/tmp}"; do
  d=$(mktemp -d "$place/vsml.XXXXXXXX" 2>/dev/null) && break
done
[ -n "$d" ] || { echo "no folder for temporary files can be made" >&2; exit 1; }
trap 'rm -rf "$d"' EXIT
trap 'exit 1' HUP INT TERM PIPE
limit=
command -v timeout >/dev/null 2>&1 && limit="timeout -k 5 __SECONDS__"
s=
"""
_ASK = '$limit sh -c {snippet} </dev/null >"$d/{i}.o" 2>"$d/{i}.e"; s="$s $?"\n'
_CLOSE = """\
echo "$s"
cd "$d" || exit 1
wc -c __FILES__
echo
head -q -c __LIMIT__ __FILES__
"""


class Garbled(ValueError):  # noqa: N818 - a state of the text, told by whoever knows the guest
    """What came back is not what the script prints."""


def script(snippets: Sequence[str], *, limit: int = LIMIT, seconds: int = SNIPPET_S) -> str:
    """Return a script that runs each snippet in a shell of its own and prints all answers."""
    asks = "".join(_ASK.format(i=i, snippet=shlex.quote(snippet)) for i, snippet in enumerate(snippets))
    files = " ".join(f"{i}.o {i}.e" for i in range(len(snippets)))
    close = _CLOSE.replace("__FILES__", files).replace("__LIMIT__", str(limit))
    return _OPEN.replace("__SECONDS__", str(seconds)) + asks + close


def read(printed: bytes, count: int, *, limit: int = LIMIT) -> list[Answer]:
    """Return the answers to `count` snippets from what their script printed. Raises Garbled."""
    head, found, body = printed.partition(b"\n\n")
    statuses, *counts = head.split(b"\n")
    try:
        codes = [int(word) for word in statuses.split()]
        sizes = [min(int(line.split()[0]), limit) for line in counts[: 2 * count]]
    except (ValueError, IndexError) as error:
        raise Garbled from error
    if not found or len(codes) != count or len(sizes) != 2 * count or len(body) != sum(sizes):
        raise Garbled
    texts = iter(_cut(body, sizes))
    return [Answer(code, next(texts), next(texts)) for code in codes]


def named(snippets: Mapping[str, str], answers: Sequence[Answer]) -> dict[str, Answer]:
    return dict(zip(snippets, answers, strict=True))


def _cut(body: bytes, sizes: Sequence[int]) -> list[str]:
    parts, start = [], 0
    for size in sizes:
        parts.append(body[start : start + size].decode("utf-8", "replace"))
        start += size
    return parts
