from __future__ import annotations

import tomllib
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.counted import checked, counted
from vsphere_ml.config.positions import KeyPath, format_path, line_of, positions

TEXT = """\
top = 1

[a]
b.c = 1
"quoted key" = "x"
inline = { one = 1, two = { three = 3 } }
list = [
  # a comment
  "first",
  { second = 2 },
]

[[nodes]]
name = "a"
[nodes.gpu]
profile = "p"

[[nodes]]
name = "b"
[[nodes.deep]]
x = 1
[[nodes.deep]]
x = 2
"""

WANTED: dict[KeyPath, int] = {
    ("top",): 1,
    ("a",): 3,
    ("a", "b", "c"): 4,
    ("a", "quoted key"): 5,
    ("a", "inline", "two", "three"): 6,
    ("a", "list"): 7,
    ("a", "list", 0): 9,
    ("a", "list", 1, "second"): 10,
    ("nodes", 0): 13,
    ("nodes", 0, "gpu"): 15,
    ("nodes", 0, "gpu", "profile"): 16,
    ("nodes", 1, "name"): 19,
    ("nodes", 1, "deep", 1, "x"): 23,
}


def test_every_way_to_write_a_key_has_its_line() -> None:
    lines = positions(TEXT)
    assert {path: lines.get(path) for path in WANTED} == WANTED


def test_a_key_that_is_not_there_has_the_line_of_what_is_around_it() -> None:
    lines = positions(TEXT)
    assert line_of(("nodes", 1, "gpu", "profile"), lines) == 18
    assert line_of(("nothing",), lines) is None


def test_a_path_is_shown_as_a_person_writes_it() -> None:
    assert format_path(("nodes", 0, "gpu", "profile")) == "nodes[0].gpu.profile"
    assert format_path(("a", "quoted key", 3)) == 'a."quoted key"[3]'


def paths(value: Any, at: KeyPath = ()) -> set[KeyPath]:
    """Return the path of every leaf of a document's values."""
    if isinstance(value, dict):
        return {path for key, each in value.items() for path in paths(each, (*at, key))}
    if isinstance(value, list):
        return {path for index, each in enumerate(value) for path in paths(each, (*at, index))}
    return {at}


NAMES = st.sampled_from(["a", "b-1", '"c d"', "'e.f'"])
VALUES = st.recursive(
    st.sampled_from(["1", '"x"', "true", '"""\nlong\n"""', "2026-11-21", "1.5"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda each: "[\n" + ",\n".join(each) + "\n]"),
        st.dictionaries(NAMES, inner, max_size=2).map(
            lambda each: "{ " + ", ".join(f"{key} = {value}" for key, value in each.items()) + " }"
        ),
    ),
    max_leaves=5,
)
TABLES = st.tuples(
    st.sampled_from(["", "[x]\n", "[x.y]\n", "[[n]]\n", "[n.z]\n", "[[n.w]]\n"]),
    st.dictionaries(NAMES, VALUES, max_size=3),
).map(lambda each: each[0] + "".join(f"{key} = {value}\n" for key, value in each[1].items()))


@counted
@settings(deadline=None)
@given(st.lists(TABLES, max_size=5).map("".join))
def test_the_grammar_finds_every_value_that_tomllib_reads(text: str) -> None:
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    checked()
    lines = positions(text)
    assert not {path for path in paths(values) if path not in lines}
    assert all(1 <= line <= text.count("\n") + 1 for line in lines.values())
