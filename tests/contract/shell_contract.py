"""What every guest behind the `Shell` port promises, the one in memory and the ones over SSH alike.

A module that runs it defines the fixtures `shell`, `login`: the user who signs in, and `place`: a folder in the guest
where files may be put.
"""

from __future__ import annotations

import hashlib
import json
from shlex import quote
from typing import TYPE_CHECKING

import pytest

from vsphere_ml.core.errors import ConfigError, GuestError
from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.core.secret import Secret

if TYPE_CHECKING:
    from pathlib import Path

    from vsphere_ml.core.model.guest import Shell

SECRET = Secret("nvapi-53cr3t value")
BOOT_ID = "cat /proc/sys/kernel/random/boot_id"
HOSTILE = (
    "a b",
    "it's",
    '"$(touch /tmp/vsml-pwned)"',
    "`id`; exit 3",
    "-n",
    "ü\t*",
    "a\\nb",
    "$HOME",
    "#x",
    "two\nlines",
)

# What a real sh says to these is written here; the guest in memory must say the same.
SAID = {
    "echo one two": CommandAnswer(0, "one two\n"),
    "printf 'a b\\n%s|' c d": CommandAnswer(0, "a b\nc|a b\nd|"),
    "true && echo yes || echo no": CommandAnswer(0, "yes\n"),
    "false && echo yes || echo no": CommandAnswer(0, "no\n"),
    "! false": CommandAnswer(0, ""),
    "! true; echo $?": CommandAnswer(0, "1\n"),
    "exit 7; echo never": CommandAnswer(7, ""),
    "false; true": CommandAnswer(0, ""),
    "echo out; echo err >&2; false": CommandAnswer(1, "out\n", "err\n"),
    "echo both >&2 2>/dev/null": CommandAnswer(0, "", "both\n"),
    "{ echo a; echo b >&2; } 2>&1 | cat": CommandAnswer(0, "a\nb\n"),
    "{ echo a; echo b >&2; } >/dev/null 2>&1": CommandAnswer(0, ""),
    "X=1; ( X=2; echo $X ); echo ${X}": CommandAnswer(0, "2\n1\n"),
    "export X='a  b'; echo \"$X\" '$X' $X": CommandAnswer(0, "a  b $X a b\n"),
    'test "$(echo x; echo)" = x && echo same': CommandAnswer(0, "same\n"),
    "test -d /etc && test ! -e /nowhere": CommandAnswer(0, ""),
    "[ -n '' ] || [ x != y ]": CommandAnswer(0, ""),
    "cat /nowhere": CommandAnswer(1, "", "cat: /nowhere: No such file or directory\n"),
    "cat </dev/null": CommandAnswer(0, ""),
    "cat": CommandAnswer(0, ""),
    "cat /nowhere 2>/dev/null || :": CommandAnswer(0, ""),
    "stat -c %a /nowhere 2>/dev/null": CommandAnswer(1, ""),
    "printf 'a.c\\nabc\\n' | grep -Fx a.c": CommandAnswer(0, "a.c\n"),
    "printf 'a.c\\nabc\\n' | grep -c a.c": CommandAnswer(0, "2\n"),
    "echo word | grep -qv word": CommandAnswer(1, ""),
    "grep x /nowhere": CommandAnswer(2, "", "grep: /nowhere: No such file or directory\n"),
    "printf x | sha256sum": CommandAnswer(0, "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881  -\n"),
    "printf '1\\n2\\n3\\n' | head -n 2 | wc -l": CommandAnswer(0, "2\n"),
    "i=0; until test $i -ge 3; do i=$((i + 1)); echo $i; done; echo end": CommandAnswer(0, "1\n2\n3\nend\n"),
    "i=0; while :; do i=$((i + 1)); test $i -le 2 || break; done; echo $i": CommandAnswer(0, "3\n"),
    "until true; do echo never; done && echo past": CommandAnswer(0, "past\n"),
    "printf 'a b\nc d\n' | awk -v x=c '$1 == x {print $2}'": CommandAnswer(0, "d\n"),
    "awk 1 /nowhere >/dev/null 2>&1": CommandAnswer(2, ""),
    "id -u": CommandAnswer(0, "0\n"),
    "sh -c 'echo inner; exit 4'": CommandAnswer(4, "inner\n"),
    "command -v no-such-thing": CommandAnswer(127, ""),
}


def failure(call: object, *arguments: object, **options: object) -> GuestError:
    with pytest.raises(GuestError) as caught:
        call(*arguments, **options)  # type: ignore[operator]
    return caught.value


def said(shell: Shell, command: str) -> str:
    return shell.ask({"it": command})["it"].out


class ShellContract:
    def test_it_has_a_name(self, shell: Shell) -> None:
        assert shell.name == "node-1"

    def test_snippets_are_answered_by_their_names_as_sh_does(self, shell: Shell) -> None:
        assert shell.ask({snippet: snippet for snippet in SAID}) == SAID

    def test_no_question_has_no_answer(self, shell: Shell) -> None:
        assert shell.ask({}) == {}

    def test_no_sh_is_an_answer_as_well(self, shell: Shell) -> None:
        answers = shell.ask({"broken": "echo 'unclosed", "whole": "echo here"})
        assert not answers["broken"].ok
        assert "Syntax error" in answers["broken"].err
        assert answers["whole"] == CommandAnswer(0, "here\n")

    def test_hostile_text_comes_back_as_it_was_quoted(self, shell: Shell) -> None:
        answers = shell.ask({text: f"printf %s {quote(text)}" for text in HOSTILE})
        assert {text: answer.out for text, answer in answers.items()} == {text: text for text in HOSTILE}

    def test_a_command_that_succeeds_is_answered(self, shell: Shell) -> None:
        assert shell.run("echo 1; echo 2 >&2") == CommandAnswer(0, "1\n", "2\n")

    def test_a_command_that_fails_is_told_with_status_and_last_lines(self, shell: Shell) -> None:
        error = failure(shell.run, "printf '%s\\n' 1 2 3 4 5 6 7 8 9 a b c d e f g h i j k l m n o; exit 42")
        assert (error.code, error.target) == ("guest.command-failed", "node-1")
        assert "status 42" in error.message
        assert error.details == tuple("56789abcdefghijklmno")
        assert error.hint

    def test_a_command_runs_as_root_or_as_the_user_who_signs_in(self, shell: Shell, login: str) -> None:
        assert shell.run("id -un").text == "root"
        assert shell.run("id -un; cat", as_root=False, stdin="read\n").out == f"{login}\nread\n"
        assert failure(shell.run, "id -un; exit 3", as_root=False).details == (login,)

    def test_a_command_reads_its_standard_input(self, shell: Shell) -> None:
        text = "first\n'second' $HOME\n"
        assert shell.run("cat", stdin=text).out == text
        assert shell.run("cat").out == ""

    def test_a_secret_reaches_the_command_and_no_error(self, shell: Shell) -> None:
        digest = hashlib.sha256(SECRET.reveal().encode()).hexdigest()
        assert shell.run("sha256sum", stdin=SECRET).out.split()[0] == digest
        error = failure(shell.run, "cat; cat >&2; false", stdin=SECRET)
        assert SECRET.reveal() not in json.dumps([error.message, error.hint, error.details])

    @pytest.mark.parametrize("name", HOSTILE)
    def test_a_file_of_any_name_has_any_text(self, shell: Shell, place: str, name: str) -> None:
        path = f"{place}/{name.replace('/', '_')}"
        shell.write(path, name + "\n\n")
        assert said(shell, f"cat -- {quote(path)}") == name + "\n\n"

    def test_a_file_is_replaced_whole_with_mode_and_owner(self, shell: Shell, place: str) -> None:
        path = f"{place}/new/folder/file"
        shell.write(path, "a long first text\n")
        shell.write(path, "second", mode=0o640, owner="root:daemon")
        assert said(shell, f"cat {path}; stat -c ' %a %U:%G' {path}") == "second 640 root:daemon\n"

    def test_a_secret_file_has_the_secret_itself(self, shell: Shell, place: str) -> None:
        shell.write(f"{place}/token", SECRET, mode=0o600)
        assert said(shell, f"cat {place}/token") == SECRET.reveal()

    def test_a_file_may_be_empty(self, shell: Shell, place: str) -> None:
        shell.write(f"{place}/empty", "")
        assert said(shell, f"test -f {place}/empty && test ! -s {place}/empty && echo yes") == "yes\n"

    def test_a_folder_is_not_replaced_by_a_file(self, shell: Shell, place: str) -> None:
        shell.write(f"{place}/folder/file", "kept")
        error = failure(shell.write, f"{place}/folder", "x")
        assert error.code == "guest.file-not-written"
        assert "folder" in error.message
        assert said(shell, f"cat {place}/folder/file") == "kept"

    def test_a_local_file_is_copied(self, shell: Shell, place: str, tmp_path: Path) -> None:
        (tmp_path / "local").write_text("content\n")
        shell.put(tmp_path / "local", f"{place}/up/it's here", mode=0o755)
        path = quote(f"{place}/up/it's here")
        assert said(shell, f"cat {path}; stat -c '%a %U:%G' {path}") == "content\n755 root:root\n"

    def test_a_local_file_that_is_not_there_is_told(self, shell: Shell, place: str, tmp_path: Path) -> None:
        with pytest.raises(ConfigError) as caught:
            shell.put(tmp_path / "absent", f"{place}/x")
        assert caught.value.code == "file.unreadable"

    def test_a_file_of_the_guests_is_copied_here(self, shell: Shell, place: str, tmp_path: Path) -> None:
        path = f"{place}/it's here"
        shell.write(path, "content\n" * 9000, mode=0o600)
        shell.get(path, tmp_path / "local")
        assert (tmp_path / "local").read_text() == "content\n" * 9000
        assert [each.name for each in tmp_path.iterdir() if "local" in each.name] == ["local"]

    def test_a_file_that_the_guest_does_not_have_leaves_nothing_here(
        self, shell: Shell, place: str, tmp_path: Path
    ) -> None:
        error = failure(shell.get, f"{place}/absent", tmp_path / "local")
        assert (error.code, error.target) == ("guest.file-unreadable", "node-1")
        assert not [each for each in tmp_path.iterdir() if "local" in each.name]

    def test_after_a_reboot_it_answers_with_another_boot_id(self, shell: Shell) -> None:
        before = said(shell, BOOT_ID)
        shell.reboot(300)
        assert said(shell, BOOT_ID) != before
        assert len(said(shell, BOOT_ID)) == len(before) == 37
