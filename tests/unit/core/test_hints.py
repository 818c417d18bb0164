"""What a hint says to type is known as such, whatever else it says, and is a text all the same."""

from __future__ import annotations

import json
import pickle
import shlex

import pytest

from vsphere_ml.core.hints import CommandLine, Hint, command_line, hint_parts


def typed(hint: str) -> list[str]:
    return [each for each in hint_parts(hint) if isinstance(each, CommandLine)]


@pytest.mark.parametrize(
    ("hint", "commands"),
    [
        ("set gpu.profile", []),
        ("`vsml plan` shows it, then `vsml provision`", ["vsml plan", "vsml provision"]),
        ("`df -h`", ["df -h"]),
        ("a ` alone", []),
        ("", []),
        (CommandLine("echo `date`"), ["echo `date`"]),
        (Hint("on its console: ", CommandLine("id; df"), "; or `this`"), ["id; df"]),
    ],
)
def test_what_can_be_typed_is_found_and_nothing_is_lost(hint: str, commands: list[str]) -> None:
    assert typed(hint) == commands
    assert "".join(hint_parts(hint)) == hint


def test_a_hint_is_a_text_to_who_only_writes_it() -> None:
    words = "to forget it, type "
    hint = Hint(words, command_line("rm", "a file"))
    assert json.loads(json.dumps(hint)) == hint == words + shlex.join(["rm", "a file"])
    assert hint_parts(pickle.loads(pickle.dumps(hint))) == hint_parts(hint)
