"""OpenSSH's settings in an image, as sshd_config(5) and ssh_config(5) say: the first value of a keyword counts."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.kubernetes.image.file_tree import FileTree

_LINE = re.compile(r"\s*(\w+)(?:\s*=\s*|\s+)(.*)")
_DEEPEST = 16  # OpenSSH, readconf.c: READCONF_MAX_DEPTH


def read_settings(tree: FileTree, path: str) -> dict[str, tuple[str, ...]]:
    """Return the values of each keyword, in lower case, that count for everybody; nothing where there is no file."""
    found: dict[str, list[str]] = {}
    for keyword, value in _lines(tree, path, _DEEPEST):
        found.setdefault(keyword, []).append(value)
    return {keyword: tuple(values) for keyword, values in found.items()}


def _lines(tree: FileTree, path: str, depth: int) -> Iterator[tuple[str, str]]:
    file = tree.find(path)
    everybody = True
    for line in file.text.splitlines() if file and depth else ():
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        keyword, value = match[1].lower(), match[2].strip()
        if keyword in {"match", "host"}:
            everybody = value.lower() in {"all", "*"}
        elif everybody and keyword == "include":
            for pattern in value.split():
                for each in tree.match(pattern if pattern.startswith("/") else f"/etc/ssh/{pattern}"):
                    yield from _lines(tree, each, depth - 1)
        elif everybody:
            yield keyword, value


def read_variables(values: tuple[str, ...]) -> dict[str, str]:
    """Return the variables of `SetEnv`, of whose lines the first counts."""
    try:
        words = shlex.split(values[0]) if values else []
    except ValueError:  # a quote that is not closed
        return {}
    return {name: value for name, _, value in (each.partition("=") for each in words)}
