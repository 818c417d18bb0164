"""Golden files: what differs fails with a diff, what nothing compares fails too, and renewing writes both away."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.golden import TESTS, Golden, read_golden, text_of, write_golden
from vsphere_ml.core.errors import NotPossible

if TYPE_CHECKING:
    from pathlib import Path

GOLDEN = sorted((TESTS / "golden").rglob("*.txt"))


def test_a_golden_file_reads_back_as_it_was_written(tmp_path: Path) -> None:
    sections = {"test_b": "one\n\n  two ", "test_a[x y]": "", "test_a[x y] #2": "\nthree"}
    write_golden(tmp_path / "deep" / "a.txt", sections)
    assert read_golden(tmp_path / "deep" / "a.txt") == sections


def test_a_text_that_differs_from_its_golden_section_fails_with_a_diff(tmp_path: Path) -> None:
    write_golden(tmp_path / "a.txt", {"test_a": "same\nold"})
    with pytest.raises(pytest.fail.Exception) as caught:
        Golden(tmp_path / "a.txt", "test_a", renew=False)("same\nnew")
    assert str(caught.value).splitlines()[-3:] == [" same", "-old", "+new"]


def test_a_text_without_a_golden_file_fails(tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception):
        Golden(tmp_path / "a.txt", "test_a", renew=False)("new")


def test_a_golden_section_that_was_not_compared_fails_its_test_alone(tmp_path: Path) -> None:
    write_golden(tmp_path / "a.txt", {"test_a": "1", "test_a #2": "2", "test_ab": "3"})
    golden = Golden(tmp_path / "a.txt", "test_a", renew=False)
    golden("1")
    with pytest.raises(AssertionError):
        golden.end()
    golden("2")
    golden.end()


def test_renewing_writes_what_is_shown_and_drops_what_is_not(tmp_path: Path) -> None:
    write_golden(tmp_path / "a.txt", {"test_a": "1", "test_a #2": "2", "test_b": "3"})
    golden = Golden(tmp_path / "a.txt", "test_a", renew=True)
    golden("new")
    golden.end()
    assert read_golden(tmp_path / "a.txt") == {"test_a": "new", "test_b": "3"}


def test_an_error_in_a_golden_file_has_its_details_code_and_hint() -> None:
    error = NotPossible("no-1", code="a.b", hint="type", details=("one", "two"))
    assert text_of({"x": [error]}).splitlines() == ["x: error: no-1", "  one", "  two", "code: a.b", "hint: type"]
    assert text_of([]) != text_of("")


@pytest.mark.parametrize("path", GOLDEN, ids=[str(path.relative_to(TESTS)) for path in GOLDEN])
def test_each_golden_section_belongs_to_a_test_that_is_there(path: Path) -> None:
    module = TESTS / path.relative_to(TESTS / "golden").with_name(f"test_{path.stem}.py")
    contracts = "".join(each.read_text("utf-8") for each in (TESTS / "contract").glob("*_contract.py"))
    defined = set(re.findall(r"def (test_\w+)", module.read_text("utf-8") + contracts))
    assert {re.split(r"[\[ ]", title.rpartition("::")[2])[0] for title in read_golden(path)} <= defined
