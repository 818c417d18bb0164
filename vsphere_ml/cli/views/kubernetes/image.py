"""What is missing in images: a line where, what, and what brings it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group

from vsphere_ml.cli.views.kubernetes.lint import count_findings, describe_diagnostic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.core.diagnostics import Diagnostic


def text(images: Sequence[str], found: Sequence[Diagnostic]) -> Group:
    """Return the findings of each image, and how many there are."""
    lines = []
    for image in images:
        own = [each for each in found if each.file == image]
        lines += [line for each in own for line in describe_diagnostic(each, image)]
        lines.append(count_findings(image, own))
    return Group(*lines)
