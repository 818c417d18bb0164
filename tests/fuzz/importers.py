"""Broken logs: cut anywhere, joined, with other tokens or bytes in them. Each is read or refused, never wrong silently.

The logs are those of tests/cases/public_logs and tests/cases/imports.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tests.fakes import public_logs
from tests.fakes.public_logs import COLLECTED
from vsphere_ml.bench.imports.parsed import ImportOptions
from vsphere_ml.core.errors import ConfigError

if TYPE_CHECKING:
    from vsphere_ml.bench.model.record import Run

SAMPLES = Path(__file__).parents[1] / "cases" / "imports"
TOLD = frozenset({"import.left-out", "import.truncated"})
TOKENS = (
    *("", "0", "-1", "1e400", "1e999", "9e400", "nan", "inf", "N/A", "637,6", "٣", "1_000", "0x10", "+5", "1.", ".5"),
    *(
        "9" * 400,
        "9" * 5000,
        "1e-400",
        "[1,0]<stdout>:",
        "\x1b[31m",
        "\x00",
        "\ufffd",
        "#",
        "{",
        "}",
        '"',
        "null",
        "\r",
    ),
)


@dataclass(frozen=True, slots=True)
class Whole:
    """A log as it should be, and the run that it is."""

    name: str
    content: bytes
    given: ImportOptions
    run: Run


@cache
def wholes() -> tuple[Whole, ...]:
    """Return every log that is read."""
    described = [each for each in public_logs.descriptions() if "error" not in each]
    texts = [(each["id"], public_logs.text(each).encode(), public_logs.given(each)) for each in described]
    samples = [
        (file.name, file.read_bytes(), ImportOptions(nodes=2, ranks=None if "json" in file.name else 2))
        for file in sorted(SAMPLES.iterdir())
        if file.suffix in {".txt", ".json"}
    ]
    return tuple(
        Whole(name, content, given, public_logs.imported(content, given)) for name, content, given in [*texts, *samples]
    )


def run(seconds: float, seed: int) -> int:
    """Try broken logs for so many seconds, and return how many there were. AssertionError for one read wrongly."""
    generator = random.Random(seed)
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        broken(generator)
        count += 1
    return count


def broken(generator: random.Random) -> None:
    """Try one broken log."""
    full = generator.choice(wholes())
    match generator.randrange(5):
        case 0:
            check_cut(full, generator.randrange(len(full.content)))
        case 1:
            check_joined(full, generator.choice(wholes()))
        case 2:
            attempt(_with_tokens(full.content, generator), full.given)
        case 3:
            attempt(_with_bytes(full.content, generator), full.given)
        case _:
            collected = COLLECTED[generator.choice(sorted(COLLECTED))](full.content.decode())
            attempt(_with_tokens(_bytes(collected), generator), full.given)


def attempt(content: bytes, given: ImportOptions) -> Run | None:
    """Return the run of a text, None where it is refused; any other exception is a mistake."""
    try:
        return public_logs.imported(content, given)
    except ConfigError as error:
        if not error.code.startswith("import."):
            raise
        return None


def check_cut(full: Whole, at: int) -> None:
    """Try the first bytes of a log: what is read of it is the log's own, and what is missing is told."""
    run = attempt(full.content[:at], full.given)
    if run is None:
        return
    where = f"{full.name} cut at {at}"
    assert set(run.sweep) <= set(full.run.sweep), where
    if run.steps is not None and full.run.steps is not None:
        steps = run.steps.step_s[0]
        assert steps == full.run.steps.step_s[0][: len(steps)], where
    for link in run.link_results:
        assert _is_in(link.bytes_per_s, full.content.decode()), where
    if _figures(run) != _figures(full.run):
        assert TOLD & {each.code for each in run.diagnostics}, where


def check_joined(first: Whole, second: Whole) -> None:
    """Try two logs in one file: it is refused, or it is the same as one of them."""
    run = attempt(first.content + second.content, first.given)
    if run is not None:
        assert _figures(run) in (_figures(first.run), _figures(second.run)), f"{first.name} and {second.name}"


def _figures(run: Run) -> object:
    return run.sweep, run.steps, [each.bytes_per_s for each in run.link_results]


def _is_in(value: float, text: str) -> bool:
    """Return whether a figure stands in the text, in one of perftest's or iperf3's units."""
    scales = (1e9 / 8, float(1 << 20), 1e6 / 8, 1e9 / 8)
    return any(f"{value / scale:.{digits}f}" in text for scale in scales for digits in (0, 1, 2, 6)) or "{" in text


def _with_tokens(content: bytes, generator: random.Random) -> bytes:
    """Return the text with other tokens in place of some."""
    lines = content.decode().splitlines()
    for _ in range(generator.randint(1, 4)):
        at = generator.randrange(len(lines))
        words = lines[at].split(" ")
        words[generator.randrange(len(words))] = generator.choice(TOKENS)
        lines[at] = " ".join(words)
        if generator.random() < 0.2:
            lines.insert(generator.randrange(len(lines)), generator.choice(lines))
        if generator.random() < 0.2 and len(lines) > 1:
            del lines[generator.randrange(len(lines))]
    return "\n".join(lines).encode("utf-8", errors="surrogatepass")


def _with_bytes(content: bytes, generator: random.Random) -> bytes:
    at = generator.randrange(len(content))
    return content[:at] + generator.randbytes(generator.randint(0, 8)) + content[at + generator.randint(0, 40) :]


def _bytes(collected: str | bytes) -> bytes:
    """Return a text whose encoding is UTF-8."""
    if isinstance(collected, str):
        return collected.encode()
    return collected.decode("utf-8", errors="ignore").replace("\x00", "").encode()
