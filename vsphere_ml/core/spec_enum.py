"""Enumerations whose members each carry a description of what they are."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Self


class SpecEnum(StrEnum):
    """A closed set of names, each written as its name in files and its `spec`; a subclass declares the spec's type.

    Who asks a member for its spec compares it with no other, so that the next member is added in one place.
    """

    spec: Any

    def __new__(cls, name: str, *spec: object) -> Self:
        """Return the member of this name."""
        made = str.__new__(cls, name)
        made._value_ = name
        (made.spec,) = spec
        return made
