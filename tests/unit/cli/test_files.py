"""Every command that takes a cluster file takes it as `-f FILE` and as a word, and not twice."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.main import get_command

from tests.unit.cli import reference
from vsphere_ml.cli.app import assemble

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Ended

COMMANDS = {
    path.removeprefix("vsml "): command
    for path, command in reference.leaves(get_command(assemble()))
    if any(each.name == "file" for each in command.params)
}
BEFORE = {"import vhpc": ["a.conf"], "bench study": ["pvrdma"], "cp": ["a", "node-1:"]}  # what comes before FILE
BEHIND = {"ssh": ["node-1"], "run": ["--", "true"], "job run": ["--", "true"]}


def file_of(name: str, *words: str) -> Path:
    params: dict[str, Any] = COMMANDS[name].make_context(name, [*words], resilient_parsing=False).params
    found: Path = params.get("file_option") or params["file"]
    return found


@pytest.mark.parametrize("option", ["-f", "--file"])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_file_is_an_option(name: str, option: str) -> None:
    assert str(file_of(name, option, "other.toml", *BEFORE.get(name, ()), *BEHIND.get(name, ()))) == "other.toml"


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"cp"}))
def test_a_file_is_a_word(name: str) -> None:
    assert str(file_of(name, *BEFORE.get(name, ()), "other.toml", *BEHIND.get(name, ()))) == "other.toml"


@pytest.mark.parametrize(
    ("name", "words", "left"),
    [
        ("run", ["--only", "a.toml", "other.toml", "--sudo", "--", "cat", "b.toml"], ["cat", "b.toml"]),
        ("run", ["--sudo", "other.toml", "--", "cat", "b.toml"], ["cat", "b.toml"]),
        ("ssh", ["--refresh", "other.toml", "node-1", "--", "cat", "b.toml"], ["cat", "b.toml"]),
    ],
)
def test_only_the_first_word_is_the_file(name: str, words: list[str], left: list[str]) -> None:
    params = COMMANDS[name].make_context(name, words).params
    assert (str(params["file"]), params["words"]) == ("other.toml", left)


@pytest.mark.parametrize(
    ("name", "words"), [("run", ["--", "a.toml"]), ("run", ["true", "a.toml"]), ("ssh", ["node-1", "--", "a.toml"])]
)
def test_a_commands_own_words_are_no_file(name: str, words: list[str]) -> None:
    assert str(file_of(name, *words)) == "cluster.toml"


def test_what_is_copied_is_no_cluster_file() -> None:
    params = COMMANDS["cp"].make_context("cp", ["cluster.toml", "node-1:"]).params
    assert (str(params["file"]), params["paths"]) == ("cluster.toml", ["cluster.toml", "node-1:"])


@pytest.mark.parametrize(
    "line",
    [
        *("run -f a.toml b.toml -- true", "run b.toml --file=a.toml -- true", "ssh b.toml -f a.toml node-1"),
        *("job logs a.toml -f b.toml", "status a.toml -f b.toml"),
    ],
)
def test_a_file_that_is_given_twice_is_refused(line: str, vsml: Callable[..., Ended]) -> None:
    before, dashes, behind = line.partition(" --")
    ended = vsml(*before.split(), "-o", "json", *f"{dashes}{behind}".split())
    assert (ended.status, [each["code"] for each in json.loads(ended.out)["errors"]]) == (2, ["usage"])
