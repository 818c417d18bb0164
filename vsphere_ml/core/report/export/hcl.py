"""Texts of HCL, the language of Terraform, in which `${` and `%{` begin what is evaluated."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Value = str | int | bool | tuple[str, ...]
_ESCAPED = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]")
_UNSAFE = re.compile(rf"{_UNPRINTABLE.pattern}|[$%](?={{)")  # as escapes: `$${` is read otherwise after another `$`
_NOT_OF_NAMES = re.compile(r"[^A-Za-z0-9_-]")


def value(given: Value) -> str:
    """Return a value; what would be evaluated in a text is not."""
    match given:
        case bool():
            return "true" if given else "false"
        case int():
            return str(given)
        case tuple():
            return f"[{', '.join(value(each) for each in given)}]"
        case _:
            return f'"{_text(given)}"'


def identifier(name: str) -> str:
    """Return a VM's name as that of a resource; names that are host names stay apart."""
    made = _NOT_OF_NAMES.sub("_", name)
    return made if made[:1].isalpha() else f"_{made}"


def comment(text: str) -> str:
    """Return a comment of one line, whatever is in the text."""
    return f"# {_UNPRINTABLE.sub(' ', text)}"


def block(
    header: str, values: Mapping[str, Value], inner: Iterator[str] | None = None, indent: int = 0
) -> Iterator[str]:
    """Yield a block's lines, its inner lines last."""
    pad, width = " " * indent, max((len(key) for key in values), default=0)
    yield f"{pad}{header} {{"
    yield from (f"{pad}  {key:{width}} = {value(given)}" for key, given in values.items())
    yield from inner or ()
    yield f"{pad}}}"


def mapping(key: str, values: Mapping[str, str], indent: int) -> Iterator[str]:
    """Yield an argument that is a map of texts, whose keys may hold anything."""
    pad, width = " " * indent, max((len(value(each)) for each in values), default=0)
    yield f"{pad}{key} = {{"
    yield from (f"{pad}  {value(each):{width}} = {value(given)}" for each, given in sorted(values.items()))
    yield f"{pad}}}"


def _text(text: str) -> str:
    escaped = "".join(_ESCAPED.get(char, char) for char in text)
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", escaped)
