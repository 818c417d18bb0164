"""From a TOML value to a step's field, by the field's type."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vsphere_ml.guest.playbooks.fields import FieldError, FileSource, Template, WheelhouseSource
from vsphere_ml.guest.templates import render
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a value may refer to: the cluster file's settings, and the folder of the playbook."""

    values: Mapping[str, str]
    folder: Path
    values_from: Path | None = None  # where relative paths among the values start; None: as those of the playbook


def read(kind: str, value: object, reading: Reading) -> Any:
    """Return a value as the field's type, which is given as it is written in the dataclass; FieldError otherwise."""
    if _is_reference(value) and kind != "Mapping[str, str]":
        if _is_set(value, reading):
            reading = replace(reading, folder=reading.values_from or reading.folder)
        value = _resolve_reference(value, kind, reading)
    return _READERS[kind](value, reading)


def _is_reference(value: object) -> bool:
    return isinstance(value, dict) and "value" in value


def _is_set(value: Any, reading: Reading) -> bool:
    return isinstance(value["value"], str) and value["value"] in reading.values


def _resolve_reference(value: Any, kind: str, reading: Reading) -> object:
    """Return what `{ value = "name", default = … }` stands for."""
    name = value["value"]
    if not isinstance(name, str) or set(value) - {"value", "default"}:
        raise FieldError("", 'expected { value = "name" }, and perhaps a default')
    if name not in reading.values:
        if "default" in value:
            return value["default"]
        raise FieldError(
            "", f"wants the value `{name}`, which the cluster file does not set", f"set `{name}` for its guests"
        )
    text = reading.values[name]
    return _from_text(kind, text)


def _from_text(kind: str, text: str) -> object:
    """Return a setting of the cluster file, which is a text, as the type of a field."""
    if kind == "int":
        try:
            return int(text)
        except ValueError:
            raise FieldError("", f"`{text}` is not a whole number") from None
    if kind == "bool":
        if text not in ("true", "false"):
            raise FieldError("", f"`{text}` is neither true nor false")
        return text == "true"
    return text.replace(",", " ").split() if kind == "tuple[str, ...]" else text


def _text(value: object, _: Reading) -> str:
    if not isinstance(value, str):
        raise FieldError("", f"expected a text, not {_name_of_type(value)}")
    if "\0" in value:
        raise FieldError("", "must not contain a NUL character")
    return value


def _read_integer(value: object, _: Reading) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise FieldError("", f"expected a whole number, not {_name_of_type(value)}")
    return value


def _yes(value: object, _: Reading) -> bool:
    if not isinstance(value, bool):
        raise FieldError("", f"expected true or false, not {_name_of_type(value)}")
    return value


def _texts(value: object, reading: Reading) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise FieldError("", f"expected a list of texts, not {_name_of_type(value)}")
    return tuple(_text(each, reading) for each in value)


def _settings(value: object, reading: Reading) -> dict[str, str]:
    if not isinstance(value, dict) or not all(
        isinstance(each, str | int) and not isinstance(each, bool) for each in value.values()
    ):
        raise FieldError("", "expected a table of texts or whole numbers")
    return {key: _text(str(each), reading) for key, each in value.items()}


def _source(value: object, reading: Reading) -> FileSource:
    source = FileSource(_text(value, reading))
    if source.refusal is not None:
        raise FieldError("", source.refusal)
    if "://" in source and not source.is_url:
        raise FieldError(
            "", f"`{source.partition('://')[0]}` is not built; use https, http, a path or `[datastore] path`"
        )
    if not source or source.is_url or source.is_datastore:
        return source
    return FileSource(reading.folder / Path(source).expanduser())


def _template(value: object, reading: Reading) -> Template:
    name = _text(value, reading)
    try:
        found = render.find(name, reading.folder) if _stays_inside(name) else None
    except OSError as error:
        raise FieldError("", f"the template `{name}` cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise FieldError(
            "", f"line {line} of the template `{name}` is not UTF-8 text", "save the file as UTF-8"
        ) from error
    if found is None:
        raise FieldError("", f"there is no template `{name}`, neither beside the playbook nor among those that ship")
    return found


def _stays_inside(name: str) -> bool:
    """Return whether a name stays in the folder that it is looked for in."""
    return bool(name) and not name.startswith("/") and ".." not in name


def _name_of_type(value: object) -> str:
    names = {bool: "true or false", str: "a text", int: "a whole number", float: "a fraction", list: "a list"}
    return names.get(type(value), "a table")


_READERS: dict[str, Callable[[object, Reading], object]] = {
    "str": _text,
    "int": _read_integer,
    "bool": _yes,
    "tuple[str, ...]": _texts,
    "Mapping[str, str]": _settings,
    "FileSource": _source,
    "WheelhouseSource": lambda value, reading: WheelhouseSource(_source(value, reading)),
    "Template": _template,
}
