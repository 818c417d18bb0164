"""From a TOML file to a Playbook, or to every mistake in it at once. No loops, conditions or expressions."""

from __future__ import annotations

import hashlib
import re
from dataclasses import MISSING, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from vsphere_ml import shipped
from vsphere_ml.core import toml
from vsphere_ml.core.bounded_file import read_bytes
from vsphere_ml.core.diagnostics import Diagnostic, mistake
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.model.guest import Playbook
from vsphere_ml.core.nearest import nearest_name
from vsphere_ml.core.order import count
from vsphere_ml.core.plan.describe import clip
from vsphere_ml.guest.playbooks.fields import FieldError, FileSource, Template
from vsphere_ml.guest.playbooks.reading import Reading, read
from vsphere_ml.guest.playbooks.registry import KINDS
from vsphere_ml.guest.steps.system.files import File
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from vsphere_ml.core.model.guest import GuestFacts, Step

KeyPath: TypeAlias = "tuple[str | int, ...]"
Positions: TypeAlias = "Callable[[str], Mapping[KeyPath, int]]"

LARGEST = 1 << 20


def load(
    path: Path,
    *,
    values: Mapping[str, str] | None = None,
    values_from: Path | None = None,
    positions: Positions | None = None,
) -> Playbook:
    """Return the playbook of a file; ConfigError with every mistake in it, or `playbook.unreadable`."""
    try:
        content = read_bytes(path, LARGEST)
    except OSError as error:
        raise _unreadable_error(path, error.strerror or str(error)) from error
    text = decode_playbook(content, path)
    return load_text(text, path, values=values, values_from=values_from, positions=positions)


def decode_playbook(content: bytes, path: Path) -> str:
    """Return the text of a playbook's content, without a byte order mark; ConfigError `playbook.unreadable`."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _unreadable_error(path, f"line {line} is not UTF-8 text") from error


def load_text(
    text: str,
    file: Path | str = "playbook.toml",
    *,
    values: Mapping[str, str] | None = None,
    values_from: Path | None = None,
    positions: Positions | None = None,
) -> Playbook:
    """Return the playbook of a text.

    `values` are what a field written as `{ value = "name" }` takes, with relative paths starting at `values_from`;
    `positions` has the line of each key. Templates are looked for beside `file`, then among those that ship.
    """
    path = Path(file)
    raw = _parse_toml(text, str(file))
    mistakes = _Mistakes(str(file), _positions(text, str(file), positions))
    about = _read_about(raw, mistakes)
    reading = Reading(values=values or {}, folder=path.parent, values_from=values_from)
    steps = tuple(_steps(raw, reading, mistakes))
    mistakes.check()
    return Playbook(name=path.stem, about=about, steps=steps, digest=_digest(text, steps))


def find(name: str, context: Path) -> Path:
    """Return the file that a playbook's name means: one that ships for a plain name, else a path from `beside`."""
    if re.fullmatch(r"[a-z0-9-]+", name):
        path = shipped.playbooks() / f"{name}.toml"
        if path.is_file():
            return path
        raise ConfigError(
            f"no playbook `{name}` ships with vsml",
            code="playbook.unknown",
            target=name,
            hint=f"name one of {', '.join(names())}, or a path such as ./{name}.toml",
        )
    return context / name


def names() -> tuple[str, ...]:
    """Return the names of the playbooks that ship."""
    return tuple(sorted(each.stem for each in shipped.playbooks().glob("*.toml")))


def sources(playbook: Playbook) -> tuple[FileSource, ...]:
    """Return every file the playbook wants copied to the guests, so that all can be looked at before any guest is."""
    return tuple(dict.fromkeys(each for each in _values(playbook.steps) if isinstance(each, FileSource) and each))


def rendering(playbook: Playbook, guests: Iterable[GuestFacts]) -> tuple[Diagnostic, ...]:
    """Return what is wrong with the playbook's templates when they are rendered for these guests, each once."""
    found: dict[Diagnostic, None] = {}
    files = [step for step in playbook.steps if isinstance(step, File)]
    for facts in guests:
        for step in files:
            try:
                step.content(facts)
            except ConfigError as error:
                found |= dict.fromkeys(error.problems)
    return tuple(found)


def templates(playbook: Playbook) -> tuple[Template, ...]:
    """Return the text of every template the playbook takes in."""
    return tuple(each for each in _values(playbook.steps) if isinstance(each, Template))


def _digest(text: str, steps: Iterable[Step]) -> str:
    """Return the SHA-256 of the playbook and of the templates it took in."""
    read = [text, *(each for each in _values(steps) if isinstance(each, Template))]
    return hashlib.sha256("\0".join(read).encode()).hexdigest()


def _values(steps: Iterable[Step]) -> Iterable[object]:
    return (getattr(step, each.name) for step in steps for each in fields(step))  # type: ignore[arg-type]


@dataclass(slots=True)
class _Mistakes:
    file: str
    lines: Mapping[KeyPath, int]
    problems: list[Diagnostic] = field(default_factory=list)

    def add(self, path: KeyPath, message: str, hint: str = "") -> None:
        """Keep a mistake of the playbook itself."""
        shown = "".join(f"[{part}]" if isinstance(part, int) else f".{clip(part)}" for part in path).lstrip(".")
        self.problems.append(mistake(self.file, self._line(path), message, key=shown, hint=hint))

    def _line(self, path: KeyPath) -> int | None:
        ends = (path[:end] for end in range(len(path), 0, -1))
        return next((self.lines[each] for each in ends if each in self.lines), None)

    def check(self) -> None:
        if self.problems:
            raise _invalid_error(
                self.file,
                tuple(sorted(self.problems, key=lambda each: (each.file != self.file, each.file, each.line or 0))),
            )


def _parse_toml(text: str, file: str) -> dict[str, Any]:
    try:
        return toml.values(text)
    except toml.NotToml as error:
        problem = mistake(file, error.line, f"is not TOML: {error.why}")
    raise _invalid_error(file, (problem,))


def _positions(text: str, file: str, positions: Positions | None) -> Mapping[KeyPath, int]:
    try:
        return positions(text) if positions is not None else {}
    except RecursionError:
        raise _invalid_error(file, (mistake(file, None, "is nested too deeply"),)) from None


def _read_about(raw: Mapping[str, Any], mistakes: _Mistakes) -> str:
    for key in raw:
        if key not in ("about", "step"):
            mistakes.add((key,), "is not known here", _close(key, ("about", "step")))
    about = raw.get("about")
    if not isinstance(about, str) or not about.strip():
        what = "is missing" if about is None else "is empty" if isinstance(about, str) else "is not a text"
        mistakes.add(("about",), f"{what}: expected a sentence that says what guests have afterwards")
        return ""
    return about.strip()


def _steps(raw: Mapping[str, Any], reading: Reading, mistakes: _Mistakes) -> Iterable[Step]:
    tables = raw.get("step")
    if not isinstance(tables, list) or not tables:
        mistakes.add(("step",), "there are none; write at least one [[step]], in double brackets")
        return
    for at, table in enumerate(tables):
        step = _step(table, ("step", at), reading, mistakes)
        if step is not None:
            yield step


def _step(table: object, at: KeyPath, reading: Reading, mistakes: _Mistakes) -> Step | None:
    if not isinstance(table, dict):
        mistakes.add(at, "expected a table, [[step]]")
        return None
    kind = table.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        text = "is missing" if kind is None else f"`{kind}` is no kind of step"
        hint = _close(kind, KINDS) if isinstance(kind, str) else ""
        mistakes.add((*at, "kind"), text, hint or f"one of {', '.join(sorted(KINDS))}")
        return None
    return _build_step(kind, {key: value for key, value in table.items() if key != "kind"}, at, reading, mistakes)


def _build_step(kind: str, given: dict[str, Any], at: KeyPath, reading: Reading, mistakes: _Mistakes) -> Step | None:
    known = {each.name: each for each in fields(KINDS[kind])}
    before = len(mistakes.problems)
    for key in given:
        if key not in known:
            mistakes.add((*at, key), f"is no field of `{kind}`", _close(key, known) or f"it has {', '.join(known)}")
    finished: dict[str, Any] = {}
    for name, each in known.items():
        if name in given:
            try:
                finished[name] = read(str(each.type), given[name], reading)
            except FieldError as wrong:
                mistakes.add((*at, name), wrong.message, wrong.hint)
        elif each.default is MISSING and each.default_factory is MISSING:
            mistakes.add((*at, name), f"is missing; `{kind}` needs it")
    if len(mistakes.problems) > before:
        return None
    try:
        step: Step = KINDS[kind](**finished)
    except FieldError as wrong:
        mistakes.problems += wrong.problems
        if not wrong.problems:
            mistakes.add((*at, wrong.field), wrong.message, wrong.hint)
        return None
    return step


def _close(name: str, known: Iterable[str]) -> str:
    found = nearest_name(name, known)
    return f"did you mean `{found}`?" if found else ""


def _invalid_error(file: str, problems: tuple[Diagnostic, ...]) -> ConfigError:
    many = count(len(problems), "mistake")
    return ConfigError(f"{file} has {many}", problems=problems, code="playbook.invalid", target=file)


def _unreadable_error(path: Path, why: str) -> ConfigError:
    return ConfigError(f"{path} cannot be read: {why}", code="playbook.unreadable", target=str(path))
