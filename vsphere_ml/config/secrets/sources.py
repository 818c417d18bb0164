"""Where a secret comes from, as a cluster file says it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.config.tables.paths import path_of
from vsphere_ml.core.model.spec import SecretSource

if TYPE_CHECKING:
    from pathlib import Path

    from vsphere_ml.config import schema
    from vsphere_ml.config.mistakes import Mistakes
    from vsphere_ml.config.positions import KeyPath


def source_of(table: schema.Password | None, base: Path) -> SecretSource:
    """Return the source; without a table the one that means the defaults."""
    if table is None:
        return SecretSource()
    return SecretSource(env=table.env, file=path_of(table.file, base), keyring=table.keyring)


def one_source(table: schema.Password | None, at: KeyPath, mistakes: Mistakes) -> None:
    """Report a table that names several sources, or none."""
    methods = sorted(table.model_fields_set) if table else ["env"]
    if len(methods) > 1:
        mistakes.add(at, f"has several sources: {', '.join(f'`{option}`' for option in methods)}; leave one")
    elif not methods and not mistakes.has_report_inside(at):
        mistakes.add(at, "is empty; name one of `env`, `file`, `keyring`")
