"""docs/reference/playbooks.md has every kind of step with its fields, types and defaults, and no other."""

from __future__ import annotations

import re
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

import pytest

from vsphere_ml.guest.playbooks import playbook
from vsphere_ml.guest.playbooks.registry import KINDS

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs" / "reference" / "playbooks.md").read_text()
TYPES = {
    "str": "text",
    "int": "whole number",
    "bool": "true or false",
    "tuple[str, ...]": "list",
    "Mapping[str, str]": "table",
    "FileSource": "file",
    "WheelhouseSource": "file or folder",
    "Template": "template",
}
SECTION = re.compile(r"^### `([a-z_]+)`\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| `([a-z0-9_]+)` \| ([a-z ]+) \| (.*?) \|(?: .*)? \|$", re.MULTILINE)
SECTIONS = dict(SECTION.findall(PAGE))


def default(each: Field[Any]) -> str:
    if each.default_factory is not MISSING:
        return "none"
    if each.default is MISSING:
        return "needed"
    if each.default in ("", (), -1) or (each.default == 0 and each.name == "hugepages"):
        return "none"
    return f"`{', '.join(each.default)}`" if isinstance(each.default, tuple) else f"`{str(each.default).lower()}`"


def test_each_kind_is_documented_and_no_other() -> None:
    assert set(SECTIONS) == set(KINDS)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_each_field_is_documented_with_type_and_default(kind: str) -> None:
    wanted = [(each.name, TYPES[str(each.type)], default(each)) for each in fields(KINDS[kind])]
    assert ROW.findall(SECTIONS[kind]) == wanted


@pytest.mark.parametrize("name", playbook.names())
def test_each_value_a_shipped_playbook_takes_is_documented(name: str) -> None:
    text = playbook.find(name, Path()).read_text()
    for value in re.findall(r'\{ value = "([a-z0-9_]+)"', text):
        assert f"| `{value}` |" in PAGE, f"{name} takes `{value}`"
