"""The house's rules of naming: `scripts/measure_house.py` counts right, and what it counts does not grow."""

from __future__ import annotations

import json
import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = """\
| term | what it is here | whose word | dialect |
|---|---|---|---|
| host capacity | what a host can give | plain English | `room`, `rooms` |
| method | how | plain English | `way`° |
| resume | finish what was begun | plain English | `gone on with` |

| old | new |
|---|---|
| `core/rooms.py` `Room` | `capacity.py` `Capacity` |
| `core/gone.py` `Gone` | `capacity.py` `Other` |
"""
ROOMS = '''\
"""A docstring may speak of rooms."""
class Room:
    way: str = "way"
class Job:
    def told(self, parallel, *, deep=True): ...
def told(): ...
def read_rooms(): raise ValueError("no room here")
def fine(): return "no way", "it is gone on with", "--way", "host.no-room", "MUSHROOMS"
'''
JOB = """\
class Job: ...
class _Job: ...
def _of(): ...
def seed(): ...
def many(a, b, c, d, e, f, g): ...
"""
TEST = """\
def test_it():
    assert "three whole words" in text and error.code == "host.no-room", "never asserted text here"
    with raises(Error, match="one two three"): ...
    print("not asserted at all")
"""


def load_script() -> Any:
    spec = spec_from_file_location("measure_house", ROOT / "scripts" / "measure_house.py")
    assert spec is not None
    assert spec.loader is not None
    script = module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "measure_house", script)  # its dataclasses look themselves up there
        spec.loader.exec_module(script)
    return script


house = load_script()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small product with its tests and its glossary."""
    for path, text in (
        (house.GLOSSARY, GLOSSARY),
        ("vsphere_ml/core/rooms.py", ROOMS),
        ("vsphere_ml/core/job.py", JOB),
        ("tests/unit/test_rooms.py", TEST),
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def names(tree: Path, measure: str) -> list[str]:
    return [offender.name for offender in house.measure(tree).offenders[measure]]


def test_functions_named_by_a_lone_participle_or_preposition_are_listed_and_verbs_are_not(tree: Path) -> None:
    assert names(tree, "ungreppable") == ["_of", "told", "fine"]


def test_a_public_class_name_that_stands_twice_is_listed_at_both_places(tree: Path) -> None:
    found = house.measure(tree).offenders["double"]
    assert [str(each) for each in found] == ["vsphere_ml/core/job.py:1: Job", "vsphere_ml/core/rooms.py:4: Job"]


def test_dialect_is_found_in_names_and_texts_and_plain_english_only_in_names(tree: Path) -> None:
    found = house.measure(tree).offenders["dialect"]
    assert [(each.name.split(":")[0], each.why) for each in found] == [
        ("rooms.py", "rooms"),
        ("Room", "room"),
        ("read_rooms", "rooms"),
        ("way", "way"),
        ("key", "way"),
        ("message", "room"),
        ("message", "gone on with"),
        ("option", "way"),
        ("code", "room"),
    ]


def test_sentences_are_counted_where_tests_compare_with_them(tree: Path) -> None:
    found = house.measure(tree).offenders["sentences"]
    assert [each.place for each in found] == ["tests/unit/test_rooms.py:2", "tests/unit/test_rooms.py:3"]


def test_functions_of_many_parameters_are_listed(tree: Path) -> None:
    assert names(tree, "parameters") == ["many"]


@pytest.mark.parametrize(
    ("figure", "value"),
    [
        ("public classes", "3"),
        ("lines of the product", "13"),
        ("parameters at most: all, flows", "7, 0"),
        ("renames of files and classes to do", "1 of 2"),
    ],
)
def test_figures_of_a_small_tree(tree: Path, figure: str, value: str) -> None:
    assert house.measure(tree).figures[figure] == value


def test_help_of_commands_is_read_and_other_docstrings_are_not() -> None:
    source = '@command(app)\ndef stop():\n    "No room."\ndef start():\n    "No room."\n'
    module = house.Module.parse(Path("stop.py"), source)
    assert [each.place for each in house.dialect_words([module], house.read_dialect(GLOSSARY))] == ["stop.py:3"]


def test_what_is_allowed_falls_and_never_grows(tree: Path) -> None:
    house.renew(house.measure(tree), tree)
    first = (tree / house.ALLOWED).read_text()
    assert json.loads(first)["double"]["names"] == {"Job": 2}
    (tree / "vsphere_ml/core/more.py").write_text("class Room: ...\n")
    with pytest.raises(ValueError, match=r"core/more\.py:1: Room"):
        house.renew(house.measure(tree), tree)
    assert (tree / house.ALLOWED).read_text() == first
    (tree / "vsphere_ml/core/more.py").unlink()
    (tree / "vsphere_ml/core/job.py").unlink()
    house.renew(house.measure(tree), tree)
    assert json.loads((tree / house.ALLOWED).read_text())["double"]["names"] == {}


def test_a_rename_that_makes_nothing_worse_passes() -> None:
    allowed = house.count_offenders([house.Offender("told", "a.py:1")])
    assert house.new_offenders([house.Offender("sought", "b.py:1")], allowed) == []


def test_the_new_offender_is_told_from_old_ones_of_the_same_name_and_file() -> None:
    old = [house.Offender("told", "a.py:1"), house.Offender("kept", "b.py:1")]
    new = house.Offender("told", "b.py:2")
    assert house.new_offenders([*old, new], house.count_offenders(old)) == [new]


def test_the_house_gets_no_worse() -> None:
    allowed, offenders = house.read_allowed(), house.measure().offenders
    grown = [
        f"{each} is one more of {house.RATCHETS[measure]}"
        for measure in house.RATCHETS
        for each in house.new_offenders(offenders[measure], allowed[measure])
    ]
    assert not grown, f"{house.GLOSSARY} has the words to use; {house.ALLOWED} what is still allowed.\n" + "\n".join(
        grown
    )


def test_the_glossary_of_the_repository_is_what_the_words_are_read_from() -> None:
    dialect = house.read_dialect((ROOT / house.GLOSSARY).read_text())
    assert {"room", "wish", "told"} <= dialect.in_messages
    assert "whole" in dialect.in_names - dialect.in_messages


def test_comments_and_docstrings_use_no_word_that_is_dialect_alone() -> None:
    words = re.compile(r"\b(wish(es|ed)?|crowds?|gone on with|untold|unheard|nobody told|lacks)\b", re.IGNORECASE)
    files = sorted((ROOT / "vsphere_ml").rglob("*.py"))
    assert not [f"{file}: {found[0]}" for file in files if (found := words.search(file.read_text("utf-8")))]
