"""What must not be in a cluster file, wherever it stands: secrets, and placeholders that nobody filled in."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.config.mistakes import Mistakes
    from vsphere_ml.config.positions import KeyPath

_SECRET_KEY = re.compile(r"(?:pass|passwd|password|passphrase|pwd|secret|token|api_?key|private_?key)$", re.IGNORECASE)
_SECRET_URL = re.compile(r"://[^/\s@]*:[^/\s@]+@")
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")
_PLACEHOLDER = re.compile(r"<[^<>\n]{1,80}>|\$\{[^{}\n]{1,80}\}")
_FREE = frozenset({"extra_config", "settings"})  # tables whose values other programs read in ways of their own
_IN_VCENTER = 'password = { env = "VSML_VCENTER_PASSWORD" }, or { file = "…" }, or { keyring = "vsml" }'
_ELSEWHERE = "leave it out; who can read the file, the plan or the VM's settings can read it"


def remove_secrets(raw: dict[str, Any], mistakes: Mistakes) -> dict[str, Any]:
    """Return the values without secrets and placeholders; each is reported as a mistake, and no secret is repeated."""
    return dict(_clean_items(raw, (), mistakes))


def _clean_items(table: dict[str, Any], at: KeyPath, mistakes: Mistakes) -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        path = (*at, key)
        if isinstance(value, dict):
            yield key, dict(_clean_items(value, path, mistakes))
            continue
        texts = _texts(value)
        if _is_secret_key(key) or (texts and any(map(_is_secret, texts))):
            hint = _IN_VCENTER if at == ("vcenter",) else _ELSEWHERE
            mistakes.add(path, "a secret must not stand in this file", hint)
        elif texts and (blank := _blank(texts)) and not _FREE.intersection(at):
            mistakes.add(path, f"`{blank}` is still to be filled in")
        else:
            yield key, _list(value, path, mistakes) if isinstance(value, list) else value


def _list(values: list[Any], at: KeyPath, mistakes: Mistakes) -> list[Any]:
    return [
        dict(_clean_items(each, (*at, index), mistakes)) if isinstance(each, dict) else each
        for index, each in enumerate(values)
    ]


@lru_cache(maxsize=1024)  # a large file has the same keys over and over
def _is_secret_key(key: str) -> bool:
    return _SECRET_KEY.search(key) is not None


def _is_secret(text: str) -> bool:
    return bool(("://" in text and _SECRET_URL.search(text)) or ("-----" in text and _PRIVATE_KEY.search(text)))


def _blank(texts: list[str]) -> str | None:
    found = (_PLACEHOLDER.search(text) for text in texts if "<" in text or "${" in text)
    return next((match[0] for match in found if match), None)


def _texts(value: object) -> list[str]:
    """Return the texts of a value: itself, or those of a list."""
    if isinstance(value, str):
        return [value]
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
