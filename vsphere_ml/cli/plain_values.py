"""Values of the command line that need no conversion, or none to speak of: a default, a text, a path, one of a choice.

typer 0.29 makes an adapter of pydantic's for each option, also where one is not given; a tenth of a second of
every run. What is to be converted or held against limits still goes there.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_origin

from typer import _coercion

_PLAIN = (bool, int, float, str, Path)
TO_CONVERT = object()


class _PlainValues:
    """In the place of what typer reads a parameter's values with."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the parameter's value of what was given, or of its default."""
        found = take_plain(value, param)
        if found is not TO_CONVERT:
            return found
        param._runtime_param = _coercion.build_runtime_param(param.type_descriptor)  # noqa: SLF001 - where typer keeps it
        return param._runtime_param.coerce(value, param=param, ctx=ctx)  # noqa: SLF001


def read_plainly(params: list[Any]) -> None:
    """Let these parameters take plain values as they are."""
    for each in params:
        if getattr(each, "_runtime_param", _PlainValues) is None:
            each._runtime_param = _PlainValues()  # noqa: SLF001 - where typer keeps it


def take_plain(value: Any, param: Any) -> Any:
    kind = param.type_descriptor.annotation
    several = param.multiple or param.nargs == -1
    if value is None:
        return () if several else None
    if several:
        texts = get_origin(kind) is list and get_args(kind) == (str,) and isinstance(value, list | tuple)
        return list(value) if texts and all(isinstance(each, str) for each in value) else TO_CONVERT
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next((each for each in kind if value in (each, each.value)), TO_CONVERT)
    if kind is Path and type(value) is str and not _is_resolved(param):
        return Path(value)
    return value if kind in _PLAIN and isinstance(value, kind) and type(value) in (kind, type(Path())) else TO_CONVERT


def _is_resolved(param: Any) -> bool:
    """Return whether typer is to see whether a path is there, or to make another of it."""
    info = param.type_descriptor.parameter_info
    return bool(info.exists or info.resolve_path or info.path_type or info.parser)
