"""Many questions in one round trip: a script for POSIX sh, and the reading of what it printed.

No name and no snippet meets another one's quoting: names stay here, each snippet is one quoted word, and answers come
back by their length. A snippet may exit, fail, read its standard input or be no shell at all.
Answers are gathered in memory (/dev/shm), so that a full disk can still be asked about.

Starting a program costs a guest far more than forking a subshell, so one shell asks all snippets, each in a subshell.
One that takes too long, or ends that shell, is asked once more in a shell of its own.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from vsphere_ml.core.model.guest import CommandAnswer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LIMIT = 1 << 20  # bytes of each output that are kept
SNIPPET_S = 60  # a hanging nvidia-smi must not keep the other answers back
TOGETHER_S = 20  # for all snippets of one shell; the one it is at then gets SNIPPET_S for itself

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
together= alone=
if command -v timeout >/dev/null 2>&1; then
  together="timeout -k 5 __TOGETHER__" alone="timeout -k 5 __ALONE__"
fi
printf %s __ASKS__ >"$d/asks"
: >"$d/said"
answered() {
  n=0 s=
  while read -r code; do n=$((n + 1)) s="$s $code"; done <"$d/said"
}
answered
while :; do
  $together sh "$d/asks" "$d" $n </dev/null >"$d/err" 2>&1
  answered
  [ $n -lt __COUNT__ ] || break
  $alone sh "$d/asks" "$d" $n alone </dev/null >"$d/err" 2>&1
  echo $? >>"$d/said"
  before=$n
  answered
  [ $n -gt $before ] || { echo "answers cannot be kept in $d" >&2; exit 1; }
done
echo "$s"
cd "$d" || exit 1
wc -c __FILES__
echo
head -q -c __LIMIT__ __FILES__
"""
# `shift` keeps the snippet from seeing our arguments.
_ASK = """\
vsml_d=$1 vsml_from=$2 vsml_alone=$3
ask() {
  [ $1 -ge $vsml_from ] || return 0
  vsml_i=$1 vsml_q=$2
  shift 2
  [ -z "$vsml_alone" ] || exec sh -c "$vsml_q" >"$vsml_d/$vsml_i.o" 2>"$vsml_d/$vsml_i.e"
  (eval "$vsml_q") >"$vsml_d/$vsml_i.o" 2>"$vsml_d/$vsml_i.e"
  echo $? >>"$vsml_d/said"
}
"""
# How dash and bash name the script that asks, in another folder each time, before what they have to say of a snippet.
_OWN_NAME = re.compile(r"^/\S+/vsml\.\w{8}/asks: (?:(?:line )?\d+: |eval: )+", re.MULTILINE)


class UnexpectedOutput(ValueError):  # noqa: N818 - a state of the text, reported by whoever knows the guest
    """What came back is not what the script prints."""


def script(
    snippets: Sequence[str], *, limit: int = LIMIT, seconds: int = SNIPPET_S, together_s: int = TOGETHER_S
) -> str:
    """Return a script that asks each snippet of a shell, and prints all answers."""
    asks = _ASK + "".join(f"ask {i} {shlex.quote(snippet)}\n" for i, snippet in enumerate(snippets))
    files = " ".join(f"{i}.o {i}.e" for i in range(len(snippets)))
    filled = {
        "TOGETHER": str(together_s),
        "ALONE": str(seconds),
        "COUNT": str(len(snippets)),
        "LIMIT": str(limit),
        "FILES": files,
        "ASKS": shlex.quote(asks),  # last: it holds what other people wrote
    }
    text = _OPEN
    for name, value in filled.items():
        text = text.replace(f"__{name}__", value)
    return text


def read(printed: bytes, count: int, *, limit: int = LIMIT) -> list[CommandAnswer]:
    """Return the answers to `count` snippets from what their script printed. Raises Garbled."""
    head, found, body = printed.partition(b"\n\n")
    statuses, *counts = head.split(b"\n")
    try:
        codes = [int(word) for word in statuses.split()]
        sizes = [min(int(line.split()[0]), limit) for line in counts[: 2 * count]]
    except (ValueError, IndexError) as error:
        raise UnexpectedOutput from error
    if not found or len(codes) != count or len(sizes) != 2 * count or len(body) != sum(sizes):
        raise UnexpectedOutput
    texts = iter(_cut(body, sizes))
    return [CommandAnswer(code, next(texts), _OWN_NAME.sub("sh: ", next(texts))) for code in codes]


def name_answers(snippets: Mapping[str, str], answers: Sequence[CommandAnswer]) -> dict[str, CommandAnswer]:
    return dict(zip(snippets, answers, strict=True))


def _cut(body: bytes, sizes: Sequence[int]) -> list[str]:
    parts, start = [], 0
    for size in sizes:
        parts.append(body[start : start + size].decode("utf-8", "replace"))
        start += size
    return parts
