"""The commented starter file of `vsml init`, and how a new cluster file is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml import shipped
from vsphere_ml.core.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


def text() -> str:
    """Return the starter file."""
    return (shipped.templates() / "cluster.toml").read_text(encoding="utf-8")


def write(path: Path) -> None:
    """Write the starter file; ConfigError as `write_new`."""
    write_new(path, text())


def write_new(path: Path, content: str) -> None:
    """Write a new file; ConfigError `config.exists` when something is there, `config.unwritable` when it cannot.

    The check and the writing are one step, so a file that appears in between is safe too.
    """
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(content)
    except FileExistsError:
        raise ConfigError(
            f"{path} is there already, and is left as it is",
            code="config.exists",
            target=str(path),
            hint=f"name another file, or type: vsml check {path}",
        ) from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "its name is not a path"
        raise ConfigError(
            f"cannot write {path}: {why[:1].lower()}{why[1:]}",
            code="config.unwritable",
            target=str(path),
            hint="name a file in a folder you may write to",
        ) from error
