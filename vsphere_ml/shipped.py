"""Finds the folders that ship beside the code: inside an installed wheel, or at the top of a checkout."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parent


def folder(name: str) -> Path:
    """Return the folder `templates` or `playbooks` of this installation."""
    for parent in (_PACKAGE / "_shipped", _PACKAGE.parent):
        if (parent / name).is_dir():
            return parent / name
    raise FileNotFoundError(f"this installation of vsml has no folder {name}")


def templates() -> Path:
    return folder("templates")


def playbooks() -> Path:
    return folder("playbooks")


def schema(name: str) -> Path:
    """Return a JSON Schema for editors: `cluster` or `playbook`."""
    folders = (_PACKAGE / "_shipped" / "schemas", _PACKAGE.parent / "docs" / "reference")
    return next(each for each in folders if each.is_dir()) / f"{name}.schema.json"
