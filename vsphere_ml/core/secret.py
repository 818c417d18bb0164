"""A secret in memory: it prints as `***`, and is neither pickled, logged nor written as JSON by accident."""

from __future__ import annotations

import hmac
from typing import NoReturn


class Secret:
    """A text that only `reveal` shows."""

    __slots__ = ("__text",)

    def __init__(self, text: str) -> None:
        self.__text = text

    def reveal(self) -> str:
        """Return the text; for the one call that sends it."""
        return self.__text

    def __bool__(self) -> bool:
        return bool(self.__text)

    def __repr__(self) -> str:
        return "***"

    def __format__(self, spec: str) -> str:
        return format("***", spec)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self.__text.encode(), other.reveal().encode())

    __hash__ = None  # type: ignore[assignment]  # a hash would tell equal secrets apart from others

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a secret cannot be pickled")
