"""What is wrong with manifests: a line where, what, and what to write instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group

from vsphere_ml.cli.views.layout.text import line
from vsphere_ml.core.diagnostics import Severity
from vsphere_ml.core.order import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.text import Text

    from vsphere_ml.core.diagnostics import Diagnostic
    from vsphere_ml.kubernetes.lint import LintedFile

STYLES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "dim"}


def text(files: tuple[LintedFile, ...]) -> Group:
    """Return the findings of each file, and how many there are."""
    return Group(*(each for file in files for each in _file(file)))


def _file(file: LintedFile) -> Iterator[Text]:
    for each in file.diagnostics:
        yield from describe_diagnostic(each, f"{each.file}:{each.line}")
    for kind in file.skipped:
        yield line((f"{file.file}: {kind} is not checked", "dim"))
    if file.jobs:
        yield count_findings(f"{file.file}: {count(file.jobs, 'MPIJob')}", file.diagnostics)


def count_findings(subject: str, found: Sequence[Diagnostic]) -> Text:
    """Return how many errors and warnings something has."""
    errors = sum(each.severity is Severity.ERROR for each in found)
    separator = ", " if ": " in subject else ": "
    return line(
        f"{subject}{separator}",
        (count(errors, "error"), "red" if errors else "green"),
        f", {count(len(found) - errors, 'warning')}",
    )


def describe_diagnostic(each: Diagnostic, place: str) -> Iterator[Text]:
    """Yield what was found where, by which rule, and what to write instead."""
    yield line(
        f"{place}: ",
        (f"{each.severity}: ", STYLES[each.severity]),
        f"{each.message} ",
        (f"({each.code})", "dim"),
    )
    yield line((f"   {each.target}; {each.hint}", "dim"))
