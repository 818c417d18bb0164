"""Enumerations of vCenter's words, which a newer vSphere may have more of."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class OpenEnum(StrEnum):
    """Words that mean something here; any other word is carried under its own name, and is none of them."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, str):
            return None
        made = str.__new__(cls, value)
        made._name_ = made._value_ = value
        return made
