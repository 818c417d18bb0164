"""The schemas in docs/reference are those of the types, and find what is not as these say."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict

import jsonschema
import pytest

from tests.schemas import answers, playbooks
from tests.schemas.check import check_answer, close
from tests.schemas.published import FILES, MADE
from tests.schemas.types import SchemaMaker
from tests.unit.cli import reference
from vsphere_ml import shipped
from vsphere_ml.core.codec import Extended, encode
from vsphere_ml.core.model.inventory import PciAddress, Sharing
from vsphere_ml.core.units import Bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PLAYBOOK = jsonschema.Draft202012Validator(playbooks.make())
BASE = tomllib.loads((shipped.playbooks() / "base.toml").read_text())
STEP = {"kind": "file", "path": "/etc/a", "text": "x"}


@pytest.mark.parametrize("name", MADE)
def test_a_published_schema_is_that_of_the_types(name: str) -> None:
    made = MADE[name]()
    jsonschema.Draft202012Validator.check_schema(made)
    assert json.loads(FILES[name].read_text()) == made, "renew it: python -m tests.schemas"


def test_every_schema_has_a_name_of_its_own() -> None:
    folder = FILES["answers"].parent
    schemas = [json.loads(each.read_text()) for each in folder.glob("*.schema.json")]
    assert all(each["title"] for each in schemas)
    assert len({each["$id"] for each in schemas}) == len(schemas)


def test_every_command_says_what_its_answer_holds() -> None:
    assert set(reference.names()) - set(answers.data_types()) == {"ssh", "cp"}


@pytest.mark.parametrize("file", sorted(shipped.playbooks().glob("*.toml")), ids=lambda file: file.stem)
def test_every_playbook_that_ships_keeps_to_the_schema(file: Path) -> None:
    PLAYBOOK.validate(tomllib.loads(file.read_text()))


@pytest.mark.parametrize(
    "book",
    [
        {**BASE, "abuot": "x"},
        {**BASE, "about": ""},
        {"about": "x"},
        {"about": "x", "step": []},
        {"about": "x", "step": [{**STEP, "kind": "fiel"}]},
        {"about": "x", "step": [{**STEP, "pahts": "x"}]},
        {"about": "x", "step": [{**STEP, "text": 7}]},
        {"about": "x", "step": [{**STEP, "text": {"valeu": "name"}}]},
        {"about": "x", "step": [{"kind": "packages"}]},
        {"about": "x", "step": [{"kind": "packages", "names": "curl"}]},
    ],
    ids=str,
)
def test_an_editor_is_told_of_what_is_wrong_in_a_playbook(book: dict[str, Any]) -> None:
    assert not PLAYBOOK.is_valid(book)


def test_a_field_takes_what_the_cluster_file_sets() -> None:
    PLAYBOOK.validate({"about": "x", "step": [{**STEP, "text": {"value": "motd", "default": "hello"}}]})


@dataclass(frozen=True, kw_only=True)
class Inner:
    """What is inside.

    More about it.
    """

    at: PciAddress
    sizes: tuple[Bytes, ...] = ()


class More(TypedDict):
    names: Sequence[str]
    kind: Literal["a", "b"]
    note: NotRequired[str]


@dataclass(frozen=True, kw_only=True)
class Outer:
    inner: Inner | None
    pair: tuple[str, int]
    by_name: Mapping[str, Inner]
    file: PurePath
    found: frozenset[str]
    sharing: Sharing
    share: float | None = None


VALUE = Extended(
    Outer(
        inner=Inner(at=PciAddress("0000:3b:00.0"), sizes=(Bytes(1 << 30),)),
        pair=("a", 1),
        by_name={"b": Inner(at=PciAddress("0000:3c:00.0"))},
        file=PurePath("/etc/a"),
        found=frozenset("xy"),
        sharing=Sharing("of a newer vSphere"),
    ),
    More(names=("a",), kind="b"),
)


def validator(**options: Any) -> jsonschema.Draft202012Validator:
    maker = SchemaMaker(**options)
    made = maker.of(Extended[Outer, More])
    return jsonschema.Draft202012Validator({**close(made), "$defs": close(maker.definitions)})


def test_what_the_serialiser_writes_keeps_to_the_schema_of_its_type() -> None:
    validator().validate(encode(VALUE))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("share",), "much"),
        (("kind",), "c"),
        (("names",), "a"),
        (("pair",), ["a", 1, 2]),
        (("pair",), [1, "a"]),
        (("inner", "new"), 1),
        (("inner",), {}),
        (("by_name", "b", "at"), None),
        (("new",), None),
        (("note",), 1),
    ],
    ids=str,
)
def test_the_schema_finds_what_is_not_of_the_type(path: tuple[str, ...], value: object) -> None:
    document = encode(VALUE)
    inside = document
    for step in path[:-1]:
        inside = inside[step]
    inside[path[-1]] = value
    assert not validator().is_valid(document)


def test_what_a_reader_fills_in_may_be_left_out() -> None:
    document = {key: each for key, each in encode(VALUE).items() if key != "share"}
    assert validator(defaults=True).is_valid(document)
    assert not validator().is_valid(document)


def test_a_class_is_described_by_its_first_paragraph() -> None:
    maker = SchemaMaker()
    maker.of(Outer)
    assert maker.definitions["Inner"]["description"] == (Inner.__doc__ or "").partition("\n")[0]
    assert "description" not in maker.definitions["Outer"]


class Twice(TypedDict):
    at: str


@pytest.mark.parametrize("kind", [bytes, complex, Extended[Inner, Twice]])
def test_a_type_without_a_form_in_json_is_refused(kind: Any) -> None:
    with pytest.raises(TypeError):
        SchemaMaker().of(kind)


PLAN: dict[str, Any] = {"schema": "vsml/3", "command": "lab down", "status": "success", "messages": [], "errors": []}
DATA = {"name": "default", "stopped": True}


def test_an_answer_is_held_against_its_commands_definition() -> None:
    check_answer({**PLAN, "data": DATA})
    check_answer({**PLAN, "status": "error", "data": None})


@pytest.mark.parametrize(
    "changed",
    [
        {"data": {**DATA, "new": 1}},
        {"data": {"name": "default"}},
        {"data": {**DATA, "stopped": "yes"}},
        {"data": None},
        {"data": DATA, "status": "error"},
        {"data": DATA, "schema": "vsml/2"},
        {"data": DATA, "more": 1},
    ],
    ids=str,
)
def test_an_answer_with_another_key_or_type_is_found(changed: dict[str, Any]) -> None:
    with pytest.raises(AssertionError):
        check_answer({**PLAN, **changed})
