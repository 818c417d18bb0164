"""Reads the playbooks that a cluster file names, with their templates, and reports every mistake in all of them."""

from __future__ import annotations

import shlex
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from vsphere_ml.core.diagnostics import Diagnostic, mistake
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.config.positions import KeyPath
    from vsphere_ml.core.model.guest import Playbook
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.guest.playbooks.fields import FileSource


def read(spec: ClusterSpec) -> tuple[Playbook, ...]:
    """Return the playbooks that the cluster file names, perhaps none, whether what they bring there exists or not.

    Their templates are rendered for stand-in guests. ConfigError with every mistake in all of them.
    """
    mistakes = _Mistakes(spec)
    books = _read(spec, mistakes)
    mistakes.check()
    return books


def read_with_files(spec: ClusterSpec) -> tuple[Playbook, ...]:
    """Return the playbooks that the cluster file names, each with every file it brings there; ConfigError as `read`."""
    from vsphere_ml.guest.playbooks import playbook

    mistakes = _Mistakes(spec)
    books = _read(spec, mistakes)
    for book in books:
        for source in playbook.sources(book):
            with mistakes.collect(_place(spec, book)):
                _there(source, book)
    mistakes.check()
    return books


def _read(spec: ClusterSpec, mistakes: _Mistakes) -> tuple[Playbook, ...]:
    from vsphere_ml.config.positions import positions
    from vsphere_ml.guest.playbooks import playbook, settings
    from vsphere_ml.guest.steps.system.shell import check_proxy
    from vsphere_ml.guest.templates import standin

    with mistakes.collect(("guest", "settings", "proxy")):
        check_proxy(spec.guest.settings)
    context = spec.file.parent if spec.file else Path()
    found: list[Playbook] = []
    paths: list[Path] = []
    for at, name in enumerate(spec.guest.playbooks):
        with mistakes.collect(("guest", "playbooks", at)):
            path = playbook.find(name, context)
            book = playbook.load(path, values=spec.guest.settings, values_from=context, positions=positions)
            found.append(book)
            paths.append(path)
    guests = standin.facts(spec) if found else ()
    for book in found:
        with mistakes.collect(_place(spec, book)):
            _check_rendering(book, playbook.rendering(book, guests))
    with mistakes.collect(("guest", "settings")):
        texts = [text for each in found for text in playbook.templates(each)]
        settings.check(spec.guest.settings, paths, texts)
    return tuple(found)


def _check_rendering(book: Playbook, problems: tuple[Diagnostic, ...]) -> None:
    if problems:
        raise ConfigError(
            f"templates of the playbook {book.name} cannot be rendered",
            problems=problems,
            code="guest.template",
            target=book.name,
        )


def _place(spec: ClusterSpec, book: Playbook) -> KeyPath:
    names = [Path(name).stem for name in spec.guest.playbooks]
    return ("guest", "playbooks", names.index(book.name))


def _there(source: FileSource, book: Playbook) -> None:
    """Refuse a file that is not on this machine, before any guest is touched; vCenter is asked for those it has."""
    if not source.is_url and not source.is_datastore and not source.is_here():
        raise ConfigError(
            f"playbook {book.name} wants {source}, which is not there",
            code="playbook.file-missing",
            target=str(source),
            hint=f"put it there, or correct its path: ls -l {shlex.quote(str(Path(source).parent))}",
        )


@dataclass(slots=True)
class _Mistakes:
    """What was found in the playbooks so far; what has no place of its own is at the cluster file's key."""

    spec: ClusterSpec
    errors: list[ConfigError] = field(default_factory=list)
    problems: list[Diagnostic] = field(default_factory=list)

    @contextmanager
    def collect(self, at: KeyPath) -> Iterator[None]:
        """Keep the ConfigError that the body ends with."""
        try:
            yield
        except ConfigError as error:
            self.errors.append(error)
            self.problems += error.problems or (self._problem(error, at),)

    def check(self) -> None:
        """Raise what was kept: one error as it is, several as one."""
        if len(self.errors) == 1:
            error = self.errors[0]
            raise ConfigError(
                error.message, problems=tuple(self.problems), code=error.code, target=error.target, hint=error.hint
            ) from error
        if self.errors:
            raise ConfigError(
                f"{len(self.problems)} mistakes in the playbooks of {self.spec.file} and their settings",
                problems=tuple(self.problems),
                code="playbook.invalid",
                target=str(self.spec.file),
            )

    def _problem(self, error: ConfigError, at: KeyPath) -> Diagnostic:
        from vsphere_ml.config.positions import format_path

        hint = error.hint if self.errors[1:] else ""  # that of a lone error is shown with it
        return mistake(str(self.spec.file), self._line(at), error.message, key=format_path(at), hint=hint)

    def _line(self, at: KeyPath) -> int | None:
        from vsphere_ml.config import document
        from vsphere_ml.config.positions import line_of, positions

        try:
            return line_of(at, positions(document.text_of(self.spec.file))) if self.spec.file else None
        except ConfigError:  # it was changed, or is gone, since it was read
            return None
