"""Values as YAML that every reader takes alike, with comments above."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WIDTH = 118  # of comments, with `# ` before them
_PLAIN = re.compile("[A-Za-z_/]")  # how a text begins that no reader takes for a number
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]")


class HexInteger(int):
    """A number that is written as PCI ids are: 0x15b3."""


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the library's signature
        return True


def _write_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Write lines as a block. Kubernetes reads YAML 1.2, where more begins with a digit and is a number: 1e3."""
    if "\n" in text:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|")
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if _PLAIN.match(text) else '"')


def _write_hex(dumper: yaml.SafeDumper, number: HexInteger) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:int", f"0x{number:04x}")


_Dumper.add_representer(str, _write_text)
_Dumper.add_representer(HexInteger, _write_hex)


def write_documents(comments: Sequence[str], objects: Iterable[Any]) -> str:
    """Return the objects as one YAML stream, each behind `---`, with the comments before the first."""
    head = "".join(f"{line}\n" for text in comments for line in _comment_lines(text))
    bodies = (yaml.dump(each, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000) for each in objects)
    return "---\n" + head + "---\n".join(bodies)


def _comment_lines(text: str) -> Iterable[str]:
    """Return a comment's lines, broken between words but for a command; what could end the comment is a blank."""
    clean = _CONTROLS.sub(" ", text)
    command = clean.startswith("  ")
    lines = [clean] if command else textwrap.wrap(clean, WIDTH, break_long_words=False, break_on_hyphens=False)
    return (f"# {line}".rstrip() for line in lines or [""])
