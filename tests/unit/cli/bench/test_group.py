"""`vsml bench FILE` is short for `vsml bench run FILE`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import typer
from typer.main import get_command

from vsphere_ml.cli import app as cli
from vsphere_ml.cli.bench.group import BenchGroup

if TYPE_CHECKING:
    from pathlib import Path

    from tests.golden import Golden


@pytest.mark.parametrize(
    ("arguments", "command", "given"),
    [
        ([], "run", "cluster.toml"),
        (["other.toml"], "run", "other.toml"),
        (["run", "other.toml"], "run", "other.toml"),
        (["--file", "other.toml"], "run", "other.toml"),
        (["compare", "a"], "compare", "a"),
        (["comparison.toml"], "run", "comparison.toml"),
    ],
)
def test_a_command_may_be_left_out(arguments: list[str], command: str, given: str) -> None:
    called: list[tuple[str, str]] = []
    app = typer.Typer(cls=BenchGroup)

    @app.command()
    def run(name: str = typer.Argument("cluster.toml"), file: str = "") -> None:
        called.append(("run", file or name))

    @app.command()
    def compare(name: str) -> None:
        called.append(("compare", name))

    get_command(app).main(arguments, standalone_mode=False)
    assert called == [(command, given)]


def test_a_mistyped_command_is_not_taken_for_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.chdir(tmp_path)
    called: list[str] = []
    app = typer.Typer(cls=BenchGroup)

    @app.command()
    def run(name: str) -> None:
        called.append(name)

    @app.command()
    def compare() -> None:
        called.append("compare")

    with pytest.raises(typer.TyperException) as caught:
        get_command(app).main(["compar"], standalone_mode=False)
    golden(caught.value)
    (tmp_path / "compar").write_text("")
    get_command(app).main(["compar"], standalone_mode=False)
    assert called == ["compar"]


@pytest.mark.parametrize("word", ["tranin", "train", "lnk"])
def test_a_workload_in_place_of_a_file_is_told_with_its_option(
    word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.run(["bench", word]) == 2
    workload = {"lnk": "link"}.get(word, "train")
    assert f"--workload {workload}" in capsys.readouterr().err


def test_a_word_that_is_neither_file_nor_command_is_a_usage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.run(["bench", "zzz", "-o", "json"]) == 2
    assert json.loads(capsys.readouterr().out)["errors"][0]["code"] == "usage"
