"""The one JSON document a command writes: versioned, the same shape for results and for errors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from vsphere_ml.core.codec import encode
from vsphere_ml.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.cli.terminal import Answer
    from vsphere_ml.core.errors import VsmlError

SCHEMA = "vsml/3"


def success(command: str, answer: Answer, messages: Sequence[str]) -> str:
    """Return the document of a command that came to its end, perhaps with some errors on the way."""
    status = "partial" if answer.errors else "success"
    return _document(command, status, answer.data, messages, answer.errors)


def failure(command: str, error: VsmlError, messages: Sequence[str]) -> str:
    """Return the document of a command that an error ended."""
    return _document(command, "error", None, messages, (error,))


def as_data(error: VsmlError) -> dict[str, Any]:
    """Return an error's fields; a file's mistakes come one by one as well."""
    answers: dict[str, Any] = {
        "code": error.code,
        "message": error.message,
        "target": error.target,
        "hint": error.hint,
        "details": list(error.details),
    }
    if isinstance(error, ConfigError) and error.problems:
        answers["problems"] = [{**encode(each), "code": each.code or error.code} for each in error.problems]
    return answers


def _document(command: str, status: str, data: object, messages: Sequence[str], errors: Sequence[VsmlError]) -> str:
    document = {
        "schema": SCHEMA,
        "command": command,
        "status": status,
        "data": encode(data),
        "messages": list(messages),
        "errors": [as_data(error) for error in errors],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
