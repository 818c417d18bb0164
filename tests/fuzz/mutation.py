"""Makes broken inputs of good ones: the same ones for the same seed."""

from __future__ import annotations

import random
import re
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_TOKEN = re.compile(rb"[A-Za-z0-9_.-]+|\s+|[^A-Za-z0-9_.\s-]")
_ODD = (
    *(b"", b"\0", b"\xff", b"\xef\xbb\xbf", b"\r", b"\x1b[31m", "\u2028".encode(), "ｎ１６".encode(), b"\x7f"),
    *(b"0", b"-1", b"1.5", b"1e999", b"nan", b"9" * 400, b"9" * 5000, b"99999999999999999999", b"0x10", b"1_0"),
    *(b'""', b'"x"', b"''", b"[]", b"{}", b"[[1], {a = 1}]", b"true", b"false", b"2026-11-21", b'"dhcp"', b'"<x>"'),
    *(b'"[1-3]"', b'"n[1-9999]"', b'"{n}"', b'"${x}"', b"{1:4}", b"{{1:4}}", b"[" * 300, b"a." * 300, b"(" * 300),
    *(b"{{", b"}}", b"{%", b"%}", b"{# ", b"{{ name }}", b"{% for x in peers %}", b"{% endfor %}", b"{% if gpus %}"),
    *(b"{{ values.x }}", b"{{ 1/0 }}", b"{{ 'x' * 10**9 }}", b"{{ name.__class__ }}", b"{% include 'x' %}"),
    *(b"{ value = 'x' }", b'"https://[x"', b'"http://[::1:3"', b'"10.0.0.1/0"', b'"::/0"', b'"-o"', b'"a;id"'),
    *(b"0x" + b"f" * 4000, b"x" * 5000, b" " * 5000, b"\n" * 50, b"=", b":", b"#", b'"', b"'''"),
)


def inputs(samples: Sequence[bytes], seconds: float, seed: int, most: int | None = None) -> Iterator[bytes]:
    """Yield inputs for so many seconds, or at most so many: each a sample with a few things changed in it."""
    chance = random.Random(seed)
    ends = time.monotonic() + seconds
    made = 0
    while made != most and (most is not None or time.monotonic() < ends):
        yield _mutated(chance, samples)
        made += 1


def _mutated(chance: random.Random, samples: Sequence[bytes]) -> bytes:
    text = chance.choice(samples)
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 5))):
        text = chance.choice((_token, _token, _line, _bytes, _from_another))(chance, text, samples)
    return text


def _token(chance: random.Random, text: bytes, samples: Sequence[bytes]) -> bytes:
    """Put something else in the place of a word."""
    tokens = _TOKEN.findall(text)
    if not tokens:
        return chance.choice(_ODD)
    other = (
        chance.choice(_ODD) if chance.random() < 0.7 else chance.choice(_TOKEN.findall(chance.choice(samples)) or [b""])
    )
    tokens[chance.randrange(len(tokens))] = other
    return b"".join(tokens)


def _line(chance: random.Random, text: bytes, _samples: Sequence[bytes]) -> bytes:
    """Remove, repeat, cut or move a line."""
    lines = text.splitlines(keepends=True) or [b""]
    at = chance.randrange(len(lines))
    what = chance.randrange(4)
    if what == 0:
        del lines[at]
    elif what == 1:
        lines.insert(chance.randrange(len(lines) + 1), lines[at])
    elif what == 2:
        lines[at] = lines[at][: chance.randrange(len(lines[at]) + 1)]
    else:
        lines.insert(chance.randrange(len(lines)), lines.pop(at))
    return b"".join(lines)


def _bytes(chance: random.Random, text: bytes, _samples: Sequence[bytes]) -> bytes:
    """Put a few bytes in the place of a few others, or cut the text."""
    start = chance.randrange(len(text) + 1)
    if chance.random() < 0.1:
        return text[:start]
    piece = (
        bytes(chance.randrange(256) for _ in range(chance.randrange(4)))
        if chance.random() < 0.5
        else chance.choice(_ODD)
    )
    return text[:start] + piece + text[start + chance.randrange(8) :]


def _from_another(chance: random.Random, text: bytes, samples: Sequence[bytes]) -> bytes:
    """Put a line of another sample into it."""
    lines = text.splitlines(keepends=True)
    others = chance.choice(samples).splitlines(keepends=True) or [b"\n"]
    lines.insert(chance.randrange(len(lines) + 1), chance.choice(others).rstrip(b"\n") + b"\n")
    return b"".join(lines)
