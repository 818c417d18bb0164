"""Many questions in one script, run by this machine's own sh."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.ssh.session import batch

if TYPE_CHECKING:
    from tests.golden import Golden

SHELLS = [each for each in ("dash", "bash", "busybox") if shutil.which(each)]


def answers(
    *snippets: str,
    limit: int = batch.LIMIT,
    shell: str = "sh",
    alone_s: int = batch.SNIPPET_S,
    together_s: int = batch.TOGETHER_S,
) -> list[CommandAnswer]:
    command = [shell, "sh"] if shell == "busybox" else [shell]
    text = batch.script(snippets, limit=limit, seconds=alone_s, together_s=together_s)
    done = subprocess.run(command, input=text.encode("utf-8", "surrogateescape"), capture_output=True, check=True)
    return batch.read(done.stdout, len(snippets), limit=limit)


@pytest.mark.parametrize("shell", SHELLS)
def test_status_and_both_outputs_come_back_by_snippet(shell: str) -> None:
    assert answers("echo 1", "echo 2 >&2; exit 7", "printf 3", shell=shell) == [
        CommandAnswer(0, "1\n"),
        CommandAnswer(7, "", "2\n"),
        CommandAnswer(0, "3"),
    ]


@pytest.mark.parametrize("shell", [each for each in ("dash", "bash") if shutil.which(each)])
def test_what_the_shell_says_does_not_name_our_script(
    shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sh").symlink_to(str(shutil.which(shell)))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    missing, syntax = answers("no-such-program", "echo )")
    assert missing.status == 127
    assert re.fullmatch("sh: no-such-program: (command )?not found\n", missing.err)
    assert syntax.err.startswith("sh: ")


@pytest.mark.parametrize(
    "hostile",
    [
        "exit 5",
        "set -e; false",
        "cat",
        "echo 'unclosed",
        "echo )",
        "kill $$",
        "kill -9 $$",
        "exec 1>&- 2>&-",
        "cd /; rm -rf ./nothing; trap - EXIT",
        "s=; d=/; limit=false",
        "exec true",
        "sleep 30 &",
        "printf '\\n\\n0 0 0\\n\\n'",
    ],
)
def test_no_snippet_breaks_the_others(hostile: str) -> None:
    first, _, last = answers("echo before", hostile, "echo after")
    assert (first, last) == (CommandAnswer(0, "before\n"), CommandAnswer(0, "after\n"))


@pytest.mark.parametrize("shell", SHELLS)
def test_a_snippet_that_reads_takes_nothing_of_the_others(shell: str) -> None:
    # Long enough that no shell has read all of the script when the first snippet runs.
    snippets = ["cat", "cat; echo done", *(f"echo {'x' * 1000}" for _ in range(40))]
    first, second, *others = answers(*snippets, shell=shell)
    assert (first, second) == (CommandAnswer(0, ""), CommandAnswer(0, "done\n"))
    assert others == [CommandAnswer(0, "x" * 1000 + "\n")] * 40


def test_a_snippet_that_hangs_is_ended_and_the_others_are_answered() -> None:
    hanging, other = answers("echo begun; sleep 600", "echo here", alone_s=5, together_s=1)
    assert hanging == CommandAnswer(124, "begun\n")
    assert other == CommandAnswer(0, "here\n")


@pytest.mark.parametrize("shell", SHELLS)
def test_snippets_that_take_long_only_together_are_all_answered(shell: str) -> None:
    slow = [f"sleep 0.7; echo {number}" for number in range(4)]
    assert answers(*slow, shell=shell, together_s=1) == [CommandAnswer(0, f"{number}\n") for number in range(4)]


def test_a_snippet_sees_neither_arguments_nor_what_others_set() -> None:
    first, second = answers("echo $#; x=1; cd /; export y=2", 'echo "$#$x$y"; pwd')
    assert first == CommandAnswer(0, "0\n")
    assert second == CommandAnswer(0, f"0\n{Path.cwd()}\n")


def test_where_no_answer_can_be_kept_the_script_ends_and_says_so(golden: Golden) -> None:
    text = batch.script(['rm -rf "$vsml_d"', "echo after"])
    ended = subprocess.run(["sh"], input=text, capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode == 1
    golden(re.sub(r"/\S+/vsml\.\w+", "FOLDER", ended.stderr))


def test_long_output_is_cut_at_the_limit_and_keeps_its_status() -> None:
    (answer, other) = answers("head -c 5000 /dev/zero | tr '\\0' x; exit 3", "echo y", limit=100)
    assert answer == CommandAnswer(3, "x" * 100)
    assert other == CommandAnswer(0, "y\n")


def test_binary_output_is_counted_in_bytes() -> None:
    binary, other = answers("printf '\\000\\377\\n\\nx'", "printf 'ü'")
    assert binary == CommandAnswer(0, "\0�\n\nx")
    assert other == CommandAnswer(0, "ü")


def test_nothing_stays_behind(tmp_path: object) -> None:
    (answer,) = answers('dirname "$(readlink /proc/$$/fd/1)"')
    assert subprocess.run(["test", "-e", answer.text], check=False).returncode == 1


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=1, max_size=4))
def test_any_text_comes_back_as_it_was_quoted(texts: list[str]) -> None:
    assert [each.out for each in answers(*(f"printf %s {quote(text)}" for text in texts))] == texts


@pytest.mark.parametrize(
    "printed",
    [
        b"",
        b"0\n",
        b"0\n3 0.o\n0 0.e\n3 total\n\nab",
        b"0 0\n0 0.o\n0 0.e\n\n",
        b"zero\n0 0.o\n0 0.e\n\n",
        b"Welcome!\n\n",
    ],
)
def test_what_no_script_prints_is_not_taken_for_answers(printed: bytes) -> None:
    with pytest.raises(batch.UnexpectedOutput):
        batch.read(printed, 1)
