"""Words of vCenter's that this release does not know are carried under their own names."""

from __future__ import annotations

import ast
import importlib
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from vsphere_ml import vsphere
from vsphere_ml.core.model.esxi_state import HostConnection
from vsphere_ml.core.model.inventory import ComponentKind, Sharing
from vsphere_ml.core.open_enum import OpenEnum

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(vsphere.__path__[0])
MODULES = sorted(FOLDER.rglob("[a-z]*.py"))


@pytest.mark.parametrize("kind", [ComponentKind, HostConnection, Sharing])
def test_an_unknown_word_is_carried_and_is_none_of_the_known(kind: type[OpenEnum]) -> None:
    word = kind("fromTheFuture")
    assert (str(word), word.value, f"{word}") == ("fromTheFuture",) * 3
    assert word == kind("fromTheFuture")
    assert hash(word) == hash(kind("fromTheFuture"))
    assert all(word is not known for known in kind)
    assert "fromTheFuture" not in {each.value for each in kind}


def test_a_known_word_is_itself() -> None:
    assert ComponentKind("dvx") is ComponentKind.DVX


def made_of_answers(source: ast.AST, names: dict[str, object]) -> Iterator[type[Enum]]:
    """Yield the enumerations that a module makes of values: `Kind(text)`."""
    for node in ast.walk(source):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            kind = names.get(node.func.id)
            if isinstance(kind, type) and issubclass(kind, Enum):
                yield kind


@pytest.mark.parametrize("path", MODULES, ids=[path.stem for path in MODULES])
def test_every_enumeration_made_of_vcenters_words_takes_words_it_does_not_know(path: Path) -> None:
    module = importlib.import_module(".".join(path.relative_to(FOLDER.parents[1]).with_suffix("").parts))
    kinds = set(made_of_answers(ast.parse(path.read_text()), vars(module)))
    assert [kind for kind in kinds if not issubclass(kind, OpenEnum)] == []
