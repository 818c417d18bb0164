"""What counts as an answer to an input that is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vsphere_ml.core.errors import ConfigError


def check_refusal(error: ConfigError, content: bytes, unreadable: str = "") -> None:
    """Raise AssertionError with the input when a refusal names no mistake; one to do with the file has none."""
    if not error.problems and error.code != unreadable:
        raise AssertionError(content)
    for each in error.problems:
        check_words(each.message, content)


def check_words(message: str, content: bytes) -> None:
    """Raise AssertionError with the input when a message says nothing, or is a library's."""
    if not message or "Traceback" in message or "pydantic" in message:
        raise AssertionError(message, content)
