"""The one JSON document a command writes: versioned, the same shape for results and for errors."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NotRequired, TypedDict

from vsphere_ml.cli.given_file import name_file_in_data
from vsphere_ml.core.codec import encode
from vsphere_ml.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.cli.terminal import Answer
    from vsphere_ml.core.diagnostics import Diagnostic
    from vsphere_ml.core.errors import VsmlError

SCHEMA = "vsml/3"


class ErrorFields(TypedDict):
    """An error: what failed, on what, why, and what to type next; the mistakes of a file one by one as well."""

    code: str
    message: str
    target: str
    hint: str
    details: list[str]
    problems: NotRequired[list[Diagnostic]]


class Document(TypedDict):
    """What a command writes with `-o json`. `status`: `partial` came to its end with errors, `error` did not."""

    schema: str
    command: str
    status: Literal["success", "partial", "error"]
    data: object
    messages: list[str]
    errors: list[ErrorFields]


def success(command: str, answer: Answer[object], messages: Sequence[str]) -> str:
    """Return the document of a command that came to its end, perhaps with some errors on the way."""
    status: Literal["partial", "success"] = "partial" if answer.errors else "success"
    return text(
        {
            "schema": SCHEMA,
            "command": command,
            "status": status,
            "data": answer.fields(),
            "messages": [*messages],
            "errors": [as_data(error) for error in answer.errors],
        }
    )


def failure(command: str, error: VsmlError, messages: Sequence[str]) -> str:
    """Return the document of a command that an error ended."""
    return text(
        {
            "schema": SCHEMA,
            "command": command,
            "status": "error",
            "data": None,
            "messages": [*messages],
            "errors": [as_data(error)],
        }
    )


def as_data(error: VsmlError) -> ErrorFields:
    """Return an error's fields; a file's mistakes come one by one as well."""
    shown: ErrorFields = {
        "code": error.code,
        "message": error.message,
        "target": error.target,
        "hint": error.hint,
        "details": [*error.details],
    }
    if isinstance(error, ConfigError) and error.problems:
        shown["problems"] = [replace(each, code=each.code or error.code) for each in error.problems]
    return shown


def text(document: Document) -> str:
    """Return a document as it is written."""
    return json.dumps(name_file_in_data(encode(document)), indent=2, ensure_ascii=False) + "\n"
