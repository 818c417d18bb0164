"""A broken file in, the exact words out. What is wanted stands in each file's last lines, after `#=> `."""

from __future__ import annotations

from pathlib import Path

import pytest

from vsphere_ml.config.load import load_text
from vsphere_ml.core.errors import ConfigError

CASES = sorted((Path(__file__).parents[2] / "cases" / "config").glob("*.toml"))
WANTED = "#=> "


def split(case: Path) -> tuple[str, list[str]]:
    """Return a case's TOML, its lines as numbered in the file, and the problems wanted."""
    lines = case.read_text().splitlines(keepends=True)
    wanted = [line.removeprefix(WANTED).rstrip("\n") for line in lines if line.startswith(WANTED)]
    return "".join(line for line in lines if not line.startswith(WANTED)), wanted


def is_reported(error: ConfigError) -> list[str]:
    """Return every problem as `line: key: message (hint)`."""
    return [
        f"{problem.line or '-'}: {problem.target}: {problem.message}" + (f" ({problem.hint})" if problem.hint else "")
        for problem in error.problems
    ]


def test_there_are_cases() -> None:
    assert len(CASES) > 20


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_every_mistake_is_told_at_once_and_in_these_words(case: Path) -> None:
    text, wanted = split(case)
    with pytest.raises(ConfigError) as raised:
        load_text(text, case.name)
    assert is_reported(raised.value) == wanted
    assert raised.value.code == "config.invalid"
    assert raised.value.status == 2


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_no_secret_is_repeated(case: Path) -> None:
    text, _ = split(case)
    with pytest.raises(ConfigError) as raised:
        load_text(text, case.name)
    assert "hunter2" not in repr(
        (raised.value.message, raised.value.details, raised.value.hint, is_reported(raised.value))
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_no_words_of_the_libraries_underneath(case: Path) -> None:
    _, wanted = split(case)
    words = " ".join(wanted).casefold()
    assert not [jargon for jargon in ("pydantic", "http", "input should", "validation", "str_") if jargon in words]
