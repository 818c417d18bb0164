"""Every kind of step, as data: what a guest answers and what is missing then; its commands and files.

A case has `[step]`, `[facts]`, `[[look]]` tables of `seen` answers with the `lack` they mean (none: nothing lacks), and
an `[apply]` table with the commands `told`, in order, and the `files` written; or `[refused]`, if it is refused before
anything is asked. In `seen`, `file:PATH` stands for the answer of a guest that has the file as the step would write it,
and `text:PATH` for its content.
"""

from __future__ import annotations

import hashlib
import tomllib
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.unit.guest.cluster import facts
from tests.unit.guest.recorder import Recorder, answer
from vsphere_ml.core.errors import GuestError
from vsphere_ml.core.model.guest import CommandAnswer, GuestFacts, Step
from vsphere_ml.guest.playbooks.fields import FileSource, Template
from vsphere_ml.guest.playbooks.reading import Reading, read
from vsphere_ml.guest.playbooks.registry import KINDS

ALL = sorted((Path(__file__).parents[3] / "cases" / "steps").glob("*.toml"))
REFUSED = [path for path in ALL if "\n[refused]\n" in path.read_text()]
# "²" counts as a digit where Python asks for one, and of 4,300 digits on it makes no number.
ODD = ("", "\n", " ", "-", "²", "9" * 5000, "a b\nc", "{}", "[]", "[" * 100_000)
CASES = [path for path in ALL if path not in REFUSED]


def case_of(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text())


def step_of(case: dict[str, Any]) -> Step:
    table = dict(case["step"])
    kind = KINDS[table.pop("kind")]
    types = {name: str(each.type) for name, each in kind.__dataclass_fields__.items()}
    reading = Reading(values={}, folder=Path("/srv"))
    step: Step = kind(**{name: read(types[name], value, reading) for name, value in table.items()})
    return step


def facts_of(case: dict[str, Any]) -> GuestFacts:
    return facts(**case.get("facts", {}))


def applied(case: dict[str, Any]) -> tuple[Recorder, str]:
    shell = Recorder({name: answer(found) for name, found in case.get("apply", {}).get("asked", {}).items()})
    return shell, step_of(case).apply(shell, facts_of(case)).value


def seen_of(case: dict[str, Any], read: dict[str, Any]) -> dict[str, CommandAnswer]:
    """Return the answers of a look to every probe of the step."""
    seen = {name: answer(found) for name, found in read.get("seen", {}).items()}
    files = applied(case)[0].files if any(each.out.startswith(("file:", "text:")) for each in seen.values()) else {}
    for name, each in seen.items():
        if each.out.startswith("file:"):
            text, mode, owner = files[each.out.removeprefix("file:")]
            digest = hashlib.sha256(text.encode()).hexdigest()
            seen[name] = CommandAnswer(0, f"{mode:o} {owner}{'staff' if owner.endswith(':') else ''}\n{digest}  -\n")
        elif each.out.startswith("text:"):
            seen[name] = CommandAnswer(0, files[each.out.removeprefix("text:")][0])
    probes = step_of(case).probes(facts_of(case))
    assert set(seen) <= set(probes), "the case answers what is not asked"
    return {name: CommandAnswer(1, "") for name in probes} | seen


def test_every_kind_has_a_case() -> None:
    assert {case_of(path)["step"]["kind"] for path in CASES} == set(KINDS)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_what_is_seen_says_what_lacks(path: Path) -> None:
    case = case_of(path)
    missing = [step_of(case).drift(seen_of(case, read), facts_of(case)) for read in case["look"]]
    assert missing == [read.get("drift") for read in case["look"]]


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_whatever_a_guest_answers_is_no_bug(path: Path) -> None:
    case = case_of(path)
    step, known = step_of(case), facts_of(case)
    for seen in [seen_of(case, each) for each in case["look"]]:
        for name, odd in product(seen, ODD):
            with suppress(GuestError):
                assert step.drift(seen | {name: CommandAnswer(0, odd)}, known) != ""


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_an_apply_tells_the_guest_this_and_nothing_else(path: Path) -> None:
    case = case_of(path)
    wanted = case.get("apply", {})
    if "error" in wanted:
        with pytest.raises(GuestError) as raised:
            applied(case)
        assert (raised.value.code, raised.value.message) == (wanted["error"], wanted["message"])
        return
    shell, need = applied(case)
    assert shell.told == wanted["told"]
    assert need == wanted.get("need", "nothing")
    assert {name: text for name, (text, _, _) in shell.files.items()} == wanted.get("files", {})


@pytest.mark.parametrize("path", REFUSED, ids=lambda path: path.stem)
def test_what_cannot_come_to_anything_is_refused_before_the_guest_is_asked(path: Path) -> None:
    case = case_of(path)
    with pytest.raises(GuestError) as raised:
        step_of(case).probes(facts_of(case))
    assert (raised.value.code, raised.value.message) == (case["refused"]["error"], case["refused"]["message"])


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_probe_is_the_same_each_time_and_its_step_has_a_title(path: Path) -> None:
    case = case_of(path)
    assert step_of(case).probes(facts_of(case)) == step_of(case).probes(facts_of(case))
    assert step_of(case).title.strip()


def test_types_of_fields_are_readable() -> None:
    assert FileSource("[nas] a/b.run").is_datastore
    assert FileSource("[nas] a/b.run").name == "b.run"
    assert FileSource("https://example.com/a/b.run?x=1").name == "b.run"
    assert not FileSource("/srv/b.run").is_url
    assert Template("x") == "x"
