"""What is wrong with manifests: a line where, what, and what to write instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group

from vsphere_ml.cli.views.layout.text import count, line
from vsphere_ml.core.rules.rule import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.text import Text

    from vsphere_ml.kubernetes.lint import LintedFile
    from vsphere_ml.kubernetes.lint_rule import ManifestFinding

STYLES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "dim"}


def text(files: tuple[LintedFile, ...]) -> Group:
    """Return the findings of each file, and how many there are."""
    return Group(*(each for file in files for each in _file(file)))


def _file(file: LintedFile) -> Iterator[Text]:
    for finding in file.findings:
        yield from _finding(finding)
    for kind in file.skipped:
        yield line((f"{file.file}: {kind} is not checked", "dim"))
    if file.jobs:
        errors = sum(each.severity is Severity.ERROR for each in file.findings)
        warnings = len(file.findings) - errors
        yield line(
            f"{file.file}: {count(file.jobs, 'MPIJob')}, ",
            (count(errors, "error"), "red" if errors else "green"),
            f", {count(warnings, 'warning')}",
        )


def _finding(finding: ManifestFinding) -> Iterator[Text]:
    yield line(
        f"{finding.file}:{finding.line}: ",
        (f"{finding.severity}: ", STYLES[finding.severity]),
        f"{finding.message} ",
        (f"({finding.rule})", "dim"),
    )
    yield line((f"   {finding.path}; {finding.hint}", "dim"))
