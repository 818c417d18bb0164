"""Golden files: the words that a view shows, kept whole in one file for each test module and compared whole.

A test gives `golden` what it rendered from fixed values; codes, targets and fields it asserts itself. The words stand
in `tests/golden/`, at the path of the test, one section for each comparison. `pytest -n 0 --renew-golden PATH` writes
what is rendered now; `git diff tests/golden` then shows which words changed.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from vsphere_ml.cli.views.layout import error as error_view
from vsphere_ml.core.errors import VsmlError

if TYPE_CHECKING:
    from collections.abc import Generator

TESTS = Path(__file__).parent
TITLE = re.compile(r"^=== (.+) ===\n", re.MULTILINE)


def golden_file(module: Path) -> Path:
    """Return the golden file of a test module."""
    return TESTS / "golden" / module.relative_to(TESTS).with_name(f"{module.stem.removeprefix('test_')}.txt")


def read_golden(path: Path) -> dict[str, str]:
    """Return the sections of a golden file by title; none when there is no file."""
    _, *parts = TITLE.split(path.read_text("utf-8")) if path.exists() else [""]
    return {title: text.removesuffix("\n\n") for title, text in zip(parts[::2], parts[1::2], strict=True)}


def write_golden(path: Path, sections: dict[str, str]) -> None:
    """Write sections in the order of their titles; a file without any goes away."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"=== {title} ===\n{text}\n\n" for title, text in sorted(sections.items())), "utf-8")
    if not sections:
        path.unlink()


def text_of(value: object) -> str:
    """Return what stands in a golden file for a value: errors as vsml shows them, each element on a line."""
    match value:
        case str():
            return value.rstrip("\n")
        case VsmlError():
            return error_view.text(value, code=True).plain
        case Mapping():
            return text_of([f"{key}: {text_of(each)}" for key, each in value.items()])
        case Iterable():
            return "\n".join(map(text_of, value)) or "(nothing)"
        case _ if is_dataclass(value) and not isinstance(value, type):
            shown = {each.name: getattr(value, each.name) for each in fields(value)}
            return f"{type(value).__name__}\n{text_of(shown)}"
    return str(value)


class Golden:
    """Compares what one test renders with the sections of its golden file, in the order of the calls."""

    def __init__(self, path: Path, test: str, *, renew: bool, places: dict[str, str] | None = None) -> None:
        self.path, self.test, self.renew, self.titles = path, test, renew, list[str]()
        self.places = places or {}  # folders that differ from run to run, and what stands for them

    def __call__(self, value: object) -> None:
        """Fail with a diff when a value differs from its section, or write it there when golden files are renewed."""
        title = f"{self.test} #{len(self.titles) + 1}" if self.titles else self.test
        self.titles.append(title)
        sections, shown = read_golden(self.path), text_of(value)
        for folder, name in self.places.items():
            shown = shown.replace(folder, name)
        if self.renew:
            write_golden(self.path, {**sections, title: shown})
        elif sections.get(title) != shown:
            diff = difflib.unified_diff(
                sections.get(title, "").split("\n"), shown.split("\n"), "golden", "shown", lineterm=""
            )
            pytest.fail(
                "\n".join([f"{title} differs from {self.path}; --renew-golden writes what is shown now", *diff]),
                pytrace=False,
            )

    def end(self) -> None:
        """Fail when the file has a section of this test that was not compared, or take it out."""
        sections = read_golden(self.path)
        stale = {each for each in sections if re.sub(r" #\d+$", "", each) == self.test} - {*self.titles}
        if self.renew and stale:
            write_golden(self.path, {title: text for title, text in sections.items() if title not in stale})
        assert self.renew or not stale, f"{self.path} has sections that nothing was compared with: {stale}"


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Generator[Golden]:
    """Give what compares rendered text with the golden file of this test's module."""
    test = request.node.nodeid.partition("::")[2]
    places = {str(TESTS.parent): "REPOSITORY"}
    if "tmp_path" in request.fixturenames:
        places[str(request.getfixturevalue("tmp_path"))] = "TMP_PATH"
    made = Golden(golden_file(request.path), test, renew=request.config.getoption("renew_golden"), places=places)
    yield made
    made.end()
