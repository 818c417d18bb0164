"""Reads YAML manifests as values, each with its line."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeAlias

import yaml

from vsphere_ml.core.diagnostics import mistake
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

Path: TypeAlias = tuple[str | int, ...]
MOST_NODES = 100_000  # aliases make a few lines stand for millions of values
DEEPEST = 64


@dataclass(frozen=True, slots=True)
class Manifest:
    """One document of a YAML file: its values, and the line of each, counted from 1."""

    values: Any
    lines: dict[Path, int] = field(default_factory=dict)
    repeated: tuple[Path, ...] = ()  # keys that stand twice in one mapping; the last one counts

    @property
    def name(self) -> str:
        name = self.get("metadata", "name")
        return name if isinstance(name, str) else ""

    def get(self, *path: str | int) -> Any:
        """Return the value at a path; None when it is not there."""
        value = self.values
        for part in path:
            if isinstance(part, int):
                value = value[part] if isinstance(value, list) and part < len(value) else None
            else:
                value = value.get(part) if isinstance(value, dict) else None
        return value

    def mapping(self, *path: str | int) -> dict[str, Any]:
        """Return the mapping at a path; empty when there is none."""
        value = self.get(*path)
        return value if isinstance(value, dict) else {}

    def line(self, path: Path) -> int:
        """Return the line of a value, or of the nearest thing around it that is there."""
        return next(self.lines[path[:end]] for end in range(len(path), -1, -1) if path[:end] in self.lines)


def read_manifests(text: str, file: str) -> list[Manifest]:
    """Return the documents of a YAML text, empty ones left out.

    Raises ConfigError `config.invalid` with the line for what is no YAML, is nested deeper than 64, or has more than
    100,000 values, aliases counted as what they stand for.
    """
    try:
        roots = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _yaml_error(file, mark.line + 1 if mark else None, error.problem or "it is no YAML") from error
    except yaml.YAMLError as error:
        raise _yaml_error(file, None, " ".join(str(error).split())) from error
    except RecursionError:
        raise _yaml_error(file, None, "it is nested too deeply") from None
    found = (_Reader(file).read(root) for root in roots)
    return [each for each in found if each.values is not None]


class _Reader:
    def __init__(self, file: str) -> None:
        self._file = file
        self._lines: dict[Path, int] = {}
        self._repeated: list[Path] = []
        self._scalars: Any = yaml.SafeLoader("")

    def read(self, root: yaml.Node) -> Manifest:
        values = self._value(root, ())
        return Manifest(values, self._lines, tuple(self._repeated))

    def _value(self, node: yaml.Node, path: Path) -> Any:
        self._lines.setdefault(path, node.start_mark.line + 1)
        if len(path) > DEEPEST or len(self._lines) > MOST_NODES:
            raise _yaml_error(self._file, node.start_mark.line + 1, "it has too many values, or is nested too deeply")
        if isinstance(node, yaml.MappingNode):
            return dict(self._pairs(node, path))
        if isinstance(node, yaml.SequenceNode):
            return [self._value(each, (*path, index)) for index, each in enumerate(node.value)]
        return self._scalar(node)

    def _pairs(self, node: yaml.MappingNode, path: Path) -> Iterator[tuple[str, Any]]:
        seen = set()
        for key, value in node.value:
            name = str(key.value) if isinstance(key, yaml.ScalarNode) else "?"
            if name in seen:
                self._repeated.append((*path, name))
            seen.add(name)
            self._lines[*path, name] = key.start_mark.line + 1
            yield name, self._value(value, (*path, name))

    def _scalar(self, node: yaml.Node) -> Any:
        try:
            return self._scalars.construct_object(node)
        except (
            ValueError,
            yaml.YAMLError,
        ):  # a date that is none, a number of thousands of digits, a tag of somebody's
            return str(node.value)


def _yaml_error(file: str, line: int | None, message: str) -> ConfigError:
    problem = mistake(file, line, message)
    return ConfigError(
        str(problem), problems=(problem,), target=file, hint="a YAML file as `kubectl apply -f` takes it"
    )
