"""Redacts what commands print, line by line: values of listed fields pass, and of everything else listed words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vsphere_ml.core.site_record.text_words import FIELDS, PATTERNS, WORDS
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from vsphere_ml.core.site_record.pseudonyms import Pseudonyms

_FIELD = re.compile(r"^(\s*)([A-Za-z_][\w ()./-]*?)(\s*[:=]\s*)(\S.*)$")
# A setting of mlxconfig: its name, then one value a column, `True(1)`, `8`, `_8_TCs(0)`, `Array[0..7]`, `N/A`.
_SETTING = re.compile(r"^\*?\s*[A-Z][A-Z0-9_]{3,}(?:\s+(?:\w+\(-?\d+\)|\d{1,10}|Array\[\d+\.\.\d+\]|N/A|[A-Z_]+))+\s*$")


@dataclass(frozen=True, slots=True)
class TextRedactor:
    """Redacts the outputs of one record."""

    pseudonyms: Pseudonyms

    def redact(self, text: str) -> str:
        """Return an output redacted."""
        return "\n".join(self._line(line) for line in text.split("\n"))

    def _line(self, line: str) -> str:
        if _SETTING.match(line):
            return line
        found = _FIELD.match(line)
        if found and found[2].strip().casefold() in FIELDS:
            return f"{found[1]}{found[2]}{found[3]}{self.pseudonyms.strike_identities(found[4])}"
        return self.pseudonyms.strike_identities(line, _may_pass)


def _may_pass(word: str) -> bool:
    return word.casefold() in WORDS or PATTERNS.fullmatch(word) is not None
