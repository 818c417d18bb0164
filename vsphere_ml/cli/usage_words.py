"""What is wrong with an option's value, in words of our own: typer (0.29) passes on those of pydantic."""

from __future__ import annotations

from typing import Any

_WORDS = {
    "int_parsing": "is not a whole number",
    "int_from_float": "is not a whole number",
    "float_parsing": "is not a number",
    "finite_number": "is not a number",
    "bool_parsing": "is neither true nor false",
}
_LIMITS = {
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "more than"),
    "less_than_equal": ("le", "at most"),
    "less_than": ("lt", "less than"),
}


def describe_usage_error(error: BaseException) -> str | None:
    """Return what is wrong with the value that a usage error is about; None when it is about something else."""
    errors = getattr(error.__cause__, "errors", None)
    if errors is None:
        return None
    return _describe_value(errors()[0])


def _describe_value(detail: dict[str, Any]) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind in _LIMITS:
        name, words = _LIMITS[kind]
        return f"expected {words} {context[name]:g}, found {detail['input']}"
    if kind == "value_error":
        return str(context["error"])
    return f"'{detail['input']}' {_WORDS.get(kind, 'cannot be used here')}"
