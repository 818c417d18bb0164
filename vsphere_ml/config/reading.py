"""Checks raw tables against the schema: what is right is kept, what is wrong is reported in our words."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from pydantic import ValidationError

from vsphere_ml.config.fields import OURS, clip, value_kind
from vsphere_ml.core.nearest import nearest_name
from vsphere_ml.core.order import list_first

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic_core import ErrorDetails

    from vsphere_ml.config.mistakes import Mistakes
    from vsphere_ml.config.positions import KeyPath
    from vsphere_ml.config.schema import FileTable

T = TypeVar("T", bound="FileTable")

_SHOWN = 20
RENAMED = {
    "door": "access",
    "make_ready": "host_config",
}  # keys and tables before the first release, and as they are now
_EXPECTED = {
    "string_type": "text in quotes",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
}
_LIMITS = {
    "greater_than_equal": ("ge", "at least"),
    "less_than_equal": ("le", "at most"),
    "less_than": ("lt", "less than"),
}


def read(model: type[T], raw: object, at: KeyPath, mistakes: Mistakes) -> T | None:
    """Return the table without what is wrong in it; None when it is no table, or a key that it must have is missing."""
    if not isinstance(raw, dict):
        mistakes.add(at, f"expected a table, found {value_kind(raw)}")
        return None
    rest = raw
    while True:
        try:
            return model.model_validate(rest)
        except ValidationError as error:
            details = error.errors(include_url=False)
        rest = deepcopy(raw) if rest is raw else rest
        for each in details:
            _report(model, each, at, mistakes)
        # What is missing in a table inside cannot be removed from it: then the table goes, so that the others are read.
        pruned = [_prune(rest, _place(each)) or _prune(rest, _place(each)[:-1]) for each in details]
        if not any(pruned):
            return None


def report_unknown(path: KeyPath, known: Iterable[str], mistakes: Mistakes, what: str = "key") -> None:
    """Report that a key is not known, and which one was probably meant."""
    known = list(known)
    new = RENAMED.get(str(path[-1]))
    if new in known:
        mistakes.add(path, f"is called `{new}` now", f"write {new} instead", meant=new)
        return
    near = nearest_name(str(path[-1]), known)
    mistakes.add(path, f"unknown {what}{_suggestion(near)}", "" if near else _join_names(known), meant=near)


def unknown_name(name: str, path: KeyPath, known: Iterable[str], mistakes: Mistakes, what: str) -> None:
    """Report that a value is the name of nothing known, and which one was probably meant."""
    near = nearest_name(name, known)
    mistakes.add(path, f"unknown {what} `{clip(name)}`{_suggestion(near)}", "" if near else _join_names(known))


def _suggestion(near: str | None) -> str:
    return f"; did you mean `{near}`?" if near else ""


def _join_names(known: Iterable[str]) -> str:
    names = list_first([clip(name) for name in known], _SHOWN)
    return f"known are {names}" if names else ""


def _report(model: type[FileTable], error: ErrorDetails, at: KeyPath, mistakes: Mistakes) -> None:
    loc = _place(error)
    path = (*at, *loc)
    kind, context = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        report_unknown(path, _keys(model, loc[:-1]), mistakes)
    elif kind == "missing":
        if not mistakes.is_reported(path):
            mistakes.add(path, "is missing", f"write {loc[-1]} = …")
    elif kind == OURS:
        mistakes.add(path, context["message"], context["hint"])
    elif kind in _LIMITS:
        name, words = _LIMITS[kind]
        mistakes.add(path, f"expected {words} {context[name]}, found {clip(str(error['input']), 20)}")
    else:
        mistakes.add(path, f"expected {_EXPECTED.get(kind, 'another value')}, found {value_kind(error['input'])}")


def _place(error: ErrorDetails) -> KeyPath:
    """Return which key an error is about; pydantic marks an error of a key's name with one part more."""
    loc = error["loc"]
    return loc[:-1] if loc[-1:] == ("[key]",) else loc


def _keys(model: type[FileTable], inside: Iterable[int | str]) -> list[str]:
    """Return the known keys of a table or of one inside it; names that people give to tables count for nothing."""
    for name in inside:
        known = model.model_fields.get(str(name))
        model = (_inner_table(known.annotation) if known else None) or model
    return list(model.model_fields)


def _inner_table(annotation: Any) -> type[FileTable] | None:
    """Return the kind of table that an annotation speaks of, however deep."""
    if hasattr(annotation, "model_fields"):
        found: type[FileTable] = annotation
        return found
    return next((each for part in get_args(annotation) if (each := _inner_table(part)) is not None), None)


def _prune(raw: dict[str, Any], loc: Iterable[int | str]) -> bool:
    """Remove the key an error is about, or the one that holds the list it is in; whether it was there."""
    table: Any = raw
    names = [str(name) for name in loc if not isinstance(name, int)]
    for depth, name in enumerate(names):
        if not isinstance(table, dict) or name not in table:
            return False
        if depth == len(names) - 1 or not isinstance(table[name], dict):
            del table[name]
            return True
        table = table[name]
    return False
