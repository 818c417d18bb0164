from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from vsphere_ml.cli.options import GlobalOptions, wants_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.golden import Golden
    from tests.unit.cli.conftest import Ended


@pytest.mark.parametrize(
    "arguments",
    [("-o", "json", "lab", "topologies"), ("lab", "topologies", "-o", "json"), ("lab", "topologies", "-ojson")],
)
def test_global_options_stand_before_or_after_the_command(
    arguments: tuple[str, ...], vsml: Callable[..., Ended]
) -> None:
    ended = vsml(*arguments)
    assert ended.status == 0
    assert json.loads(ended.out)["command"] == "lab topologies"


def test_what_is_given_after_the_command_wins() -> None:
    before = GlobalOptions().but({"timeout": 5.0, "debug": True, "verbose": None})
    after = before.but({"timeout": 9.0, "debug": None})
    assert (after.timeout, after.debug, after.verbose) == (9.0, True, False)


@pytest.mark.parametrize("form", [("-o", "json"), ("--output", "json"), ("--output=json",), ("-ojson",)])
@pytest.mark.parametrize(
    "mistake", [("lab", "--nonsense"), ("nonsense",), ("check", "a", "b"), ("--timeout", "x", "check")]
)
def test_a_mistake_in_the_command_line_is_an_envelope_where_json_was_asked(
    mistake: tuple[str, ...], form: tuple[str, ...], vsml: Callable[..., Ended]
) -> None:
    ended = vsml(*form, *mistake)
    assert ended.status == 2
    document = json.loads(ended.out)
    assert document["errors"][0]["code"] == "usage"
    assert document["errors"][0]["hint"].endswith("--help")


def test_a_mistake_in_the_command_line_says_what_to_type(vsml: Callable[..., Ended], golden: Golden) -> None:
    ended = vsml("lab", "upp")
    assert (ended.status, ended.out) == (2, "")
    golden(ended.err)


def test_no_command_at_all_shows_the_help(vsml: Callable[..., Ended]) -> None:
    ended = vsml()
    assert ended.status == 2
    assert "Usage: vsml" in ended.out + ended.err


def test_every_command_has_an_example_and_the_global_options(vsml: Callable[..., Ended]) -> None:
    from typer.main import get_command  # noqa: PLC0415

    from vsphere_ml.cli.app import assemble  # noqa: PLC0415

    commands = _leaves(get_command(assemble()))
    assert len(commands) >= 8
    for path, command in commands.items():
        assert "Example" in (command.help or ""), path
        assert "vsml " in (command.help or "").partition("Example")[2], path
        assert {"output", "debug", "insecure"} <= {parameter.name for parameter in command.params}, path


def _leaves(command: Any, path: str = "vsml") -> dict[str, Any]:
    children = getattr(command, "commands", None)
    if not children:
        return {path: command}
    return {leaf: each for name, child in children.items() for leaf, each in _leaves(child, f"{path} {name}").items()}


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("plan -o json", True),
        ("-o json", True),
        ("plan --output=json", True),
        ("plan --output json x", True),
        ("plan -ojson", True),
        ("plan -vo json", True),
        ("plan -vojson", True),
        ("plan -o table", False),
        ("plan json", False),
        ("plan --only json", False),
        ("plan -o", False),
        ("", False),
    ],
)
def test_a_request_for_json_is_seen_also_where_the_rest_is_wrong(typed: str, wanted: bool) -> None:  # noqa: FBT001
    assert wants_json(typed.split()) is wanted


@pytest.mark.parametrize("typed", ["-o json", "-o json lab", "-o json plan --nope", "lab -vo json", "nope -o json"])
def test_a_wrong_command_line_is_answered_in_json_when_that_is_asked_for(
    typed: str, vsml: Callable[..., Ended]
) -> None:
    ended = vsml(*typed.split())
    assert ended.status == 2
    assert [error["code"] for error in json.loads(ended.out)["errors"]] == ["usage"]


def test_what_stands_after_two_dashes_is_a_guests_command() -> None:
    assert wants_json(["run", "-o", "json", "--", "ls"])
    assert not wants_json(["run", "--", "kubectl", "get", "nodes", "-o", "json"])


@pytest.mark.parametrize("form", [("{}",), ("-f", "{}"), ("--file={}",)])
def test_the_cluster_file_is_an_argument_or_an_option(
    form: tuple[str, ...], vsml: Callable[..., Ended], tmp_path: Path
) -> None:
    file = str(tmp_path / "none.toml")
    ended = vsml("check", *(word.format(file) for word in form), "-o", "json")
    assert [error["target"] for error in json.loads(ended.out)["errors"]] == [file]


def test_the_cluster_file_is_given_once(vsml: Callable[..., Ended]) -> None:
    ended = vsml("check", "a.toml", "-f", "b.toml", "-o", "json")
    assert ended.status == 2
    assert [error["code"] for error in json.loads(ended.out)["errors"]] == ["usage"]


def test_every_command_of_a_cluster_file_takes_it_as_an_option() -> None:
    from typer.main import get_command  # noqa: PLC0415

    from vsphere_ml.cli.app import assemble  # noqa: PLC0415

    of_a_file = {
        path: {option for each in command.params for option in each.opts}
        for path, command in _leaves(get_command(assemble())).items()
        if any(each.name == "file" for each in command.params)
    }
    assert len(of_a_file) > 12
    assert all({"-f", "--file"} <= options for options in of_a_file.values())


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "-o", "yaml"),
        ("plan", "--timeout", "abc"),
        ("plan", "--timeout", "0"),
        ("lab", "up", "--port", "x"),
    ],
)
def test_a_wrong_value_is_told_in_our_words(
    arguments: tuple[str, ...], vsml: Callable[..., Ended], golden: Golden
) -> None:
    ended = vsml(*arguments)
    assert ended.status == 2
    golden(ended.err)
    assert "Input should" not in ended.err
    assert "Value error" not in ended.err


@pytest.mark.parametrize("line", ["plan --results x", "status --env A=b", "check --run-in guest"])
def test_an_option_of_another_command_is_not_said_to_be_called_otherwise(line: str, vsml: Callable[..., Any]) -> None:
    ended = vsml(*line.split(), "-o", "json")
    (error,) = json.loads(ended.out)["errors"]
    assert (ended.status, error["code"], error["message"].count(line.split()[1])) == (2, "usage", 1)
