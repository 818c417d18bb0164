"""What a site record holds, before it is written."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypedDict

from rich.console import Group

from vsphere_ml.cli.views.layout.text import line, table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rich.console import RenderableType

    from vsphere_ml.core.site_record.exchanges import SiteRecord
    from vsphere_ml.core.site_record.redact_soap import SoapRedactor


class RecordData(TypedDict):
    """A site record that was written; by field how many texts passed and were replaced."""

    folder: Path
    files: list[str]
    gaps: tuple[str, ...]
    passed: Mapping[str, int]
    replaced: Mapping[str, int]


def text(record: SiteRecord, redactor: SoapRedactor, *, fields: bool) -> RenderableType:
    """Return each kind of exchange with its number and size, and how much was replaced; with `fields` each field."""
    parts: list[RenderableType] = [table(("KIND", "EXCHANGE", "FILES", "BYTES"), _rows(record))]
    parts += [line(f"not read: {gap}") for gap in record.gaps]
    passed, replaced = sum(redactor.passed.values()), sum(redactor.replaced.values())
    parts.append(
        line(
            f"of vCenter's texts {passed} pass, of {len(redactor.passed)} fields that are listed; "
            f"{replaced} of {len(redactor.replaced)} other fields are pseudonyms"
        )
    )
    if fields:
        rows = [(name, "passes", str(count)) for name, count in sorted(redactor.passed.items())]
        rows += [(name, "replaced", str(count)) for name, count in sorted(redactor.replaced.items())]
        parts.append(table(("FIELD", "TEXT", "TIMES"), rows))
    return Group(*parts)


def _rows(record: SiteRecord) -> list[tuple[str, str, str, str]]:
    files, sizes = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    exchanges = [(("vcenter", each.method), each.text()) for each in record.soap]
    exchanges += [((each.where, each.command), each.text()) for each in record.commands]
    for kind, content in exchanges:
        files[kind] += 1
        sizes[kind] += len(content.encode())
    return [(*kind, str(files[kind]), str(sizes[kind])) for kind in files]


def data(folder: Path, record: SiteRecord, redactor: SoapRedactor) -> RecordData:
    """Return what was written, and the fields that passed and were replaced, with how often."""
    return {
        "folder": folder,
        "files": sorted(record.files()),
        "gaps": record.gaps,
        "passed": dict(sorted(redactor.passed.items())),
        "replaced": dict(sorted(redactor.replaced.items())),
    }
