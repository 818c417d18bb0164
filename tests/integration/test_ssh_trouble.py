"""What goes wrong in a guest that answers, and what must never be shown, against real OpenSSH servers."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import threading
import time
from typing import TYPE_CHECKING

import pytest

from tests.fakes.clock import FakeClock
from tests.integration.shells import open_shell
from tests.integration.sshd import SUDO_PASSWORD, Sshd
from tests.integration.ways import SECRET, at_port, failure, server, servers, shell, told
from tests.waiting import until
from vsphere_ml.core.errors import GuestError
from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.core.plan.outcome import Interrupted
from vsphere_ml.ssh.fanout import in_each
from vsphere_ml.ssh.reach import wait_for
from vsphere_ml.ssh.session import files
from vsphere_ml.ssh.session.connect import close, connect
from vsphere_ml.ssh.session.execute import ConnectionCut, execute

if TYPE_CHECKING:
    from pathlib import Path

    from vsphere_ml.core.model.guest import Shell
    from vsphere_ml.ssh.session.shell import SshShell

__all__ = ["server", "servers", "shell"]


class TestTrouble:
    def test_a_connection_that_is_cut_in_mid_command(self, shell: SshShell, server: Sshd, tmp_path: Path) -> None:
        marker = tmp_path / "begun"

        def cut() -> None:
            until(marker.exists, "the command never began")
            server.cut()

        cutter = threading.Thread(target=cut)
        cutter.start()
        error = failure(lambda: shell.run(f"touch {marker}; sleep 60"))
        cutter.join()
        assert (error.code, error.target) == ("guest.connection-lost", "node-1")
        assert "go on" in error.message
        assert shell.ask({"again": "echo back"})["again"].out == "back\n"

    def test_a_connection_that_is_gone_already(self, server: Sshd) -> None:
        connection = connect(server.target())
        connection.transport.close()
        with pytest.raises(ConnectionCut):
            execute(connection.transport, "true", b"", deadline_s=60, out=_ignore, err=_ignore)
        close(connection)

    def test_new_folders_can_be_entered_by_everybody(self, shell: SshShell, tmp_path: Path) -> None:
        shell.write(f"{tmp_path}/a/b/file", "x", mode=0o600)
        assert [(tmp_path / each).stat().st_mode & 0o777 for each in ("a", "a/b")] == [0o755, 0o755]

    def test_a_file_that_arrives_in_part_is_as_it_was(self, shell: SshShell, tmp_path: Path) -> None:
        path = tmp_path / "there" / "file"
        shell.write(str(path), "old")
        error = failure(lambda: shell.run(files.replace(str(path), 1000, 0o644, "root:root"), stdin="new"))
        assert [line.partition(" bytes")[0] for line in error.details] == ["3 of 1000"]
        assert path.read_text() == "old"
        assert list(path.parent.iterdir()) == [path]

    def test_a_command_that_takes_too_long_is_ended_in_the_guest(self, shell: SshShell, tmp_path: Path) -> None:
        error = failure(lambda: shell.run(f"echo begun; sleep 77.{os.getpid()}", timeout_s=5))
        assert error.code == "guest.timeout"
        assert error.details == ("begun",)
        until(lambda: f"sleep 77.{os.getpid()}" not in _processes(), "it goes on")

    def test_no_question_hides_the_others(self, shell: SshShell) -> None:
        answers = shell.ask({"a": "echo a; exit 9", "b": "cat", "c": "kill -9 $$", "d": "head -c 3000000 /dev/zero"})
        assert {name: (each.status, len(each.out)) for name, each in answers.items()} == {
            "a": (9, 2),
            "b": (0, 0),
            "c": (137, 0),
            "d": (0, 1 << 20),
        }

    def test_a_command_ended_by_a_signal_is_told_so(self, shell: SshShell) -> None:
        assert "SIGKILL" in failure(lambda: shell.run("kill -9 $$")).message

    def test_much_in_and_much_out_at_once(self, shell: SshShell) -> None:
        text = "".join(f"{n} {'x' * 90}\n" for n in range(60_000))
        answer = shell.run("tee /dev/stderr | tail -n 1", stdin=text)
        assert answer.out == text[-len("59999 ") - 91 :]
        assert len(answer.err) == 1 << 20

    def test_a_command_that_reads_no_further_is_no_error(self, shell: SshShell) -> None:
        assert shell.run("exec <&-; echo 1", stdin="x" * 5_000_000) == CommandAnswer(0, "1\n")

    def test_a_full_disk_leaves_the_file_as_it_was(self, shell: SshShell, tmp_path: Path) -> None:
        place = tmp_path / "small"
        shell.run(f"mkdir {place} && mount -t tmpfs -o size=64k tmpfs {place} && echo old >{place}/file")
        error = failure(lambda: shell.write(f"{place}/file", "x" * 200_000))
        assert error.code == "guest.file-not-written"
        assert os.strerror(errno.ENOSPC) in told(error)
        assert shell.ask({"it": f"ls -A {place}; cat {place}/file"})["it"].out == "file\nold\n"
        (tmp_path / "local").write_bytes(b"x" * 200_000)
        error = failure(lambda: shell.put(tmp_path / "local", f"{place}/other"))
        assert error.code == "guest.file-not-written"
        assert shell.ask({"it": f"ls -A {place}"})["it"].out == "file\n"
        shell.run(f"umount {place}")

    def test_a_guest_that_does_not_come_back_is_told_with_what_was_seen(self, server: Sshd, tmp_path: Path) -> None:
        clock = FakeClock()
        with open_shell(server.target(), tmp_path / "log", clock) as shell:
            shell.run("mount --bind /bin/true /run/guest/bin/systemctl")
            error = failure(lambda: shell.reboot(20))
            shell.run("umount /run/guest/bin/systemctl")
        assert error.code == "guest.reboot-timeout"
        assert "not rebooted" in error.message
        assert clock.seconds == 20


class TestSecrets:
    def test_no_secret_is_in_a_process_list_a_log_or_an_error(self, server: Sshd, tmp_path: Path) -> None:
        seen = tmp_path / "processes"
        watch = f"cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' >{seen}"
        target = server.target(user="asked", sudo_password=SUDO_PASSWORD)
        log = tmp_path / "log"
        with open_shell(target, log, FakeClock()) as shell:
            shell.run(f"{watch}; cat", stdin=SECRET)
            error = failure(lambda: shell.run("cat >&2; exit 1", stdin=SECRET))
            shell.write(f"{tmp_path}/token", SECRET, mode=0o600)
        assert "sudo" in seen.read_text(errors="replace")
        for text in (seen.read_text(errors="replace"), log.read_text(), told(error)):
            assert SECRET.reveal() not in text
            assert SUDO_PASSWORD.reveal() not in text
        assert "***" in log.read_text()
        assert (tmp_path / "token").read_text() == SECRET.reveal()

    def test_the_log_has_every_line_with_its_time(self, shell: SshShell) -> None:
        shell.run("echo 1; echo 2 >&2; printf 3")
        lines = [line.split(" ", 1) for line in shell.log.read_text().splitlines()]
        assert all(re.match(r"\d{4}-\d\d-\d\dT", time) for time, _ in lines)
        assert sorted(rest for _, rest in lines) == sorted(
            ["$ echo 1; echo 2 >&2; printf 3", "< 1", "! 2", "< 3", "= status 0"]
        )
        assert shell.log.stat().st_mode & 0o777 == 0o600


class TestMany:
    def test_one_guest_s_failure_leaves_the_others_alone(self, servers: list[Sshd], tmp_path: Path) -> None:
        targets = [server.target() for server in servers]
        targets[1] = at_port(targets[1], 1)
        results = in_each(targets, tmp_path, FakeClock(), lambda shell: shell.run(f"echo {shell.name}").out)
        assert (results["node-1"], results["node-3"]) == ("node-1\n", "node-3\n")
        assert isinstance(results["node-2"], GuestError)
        assert {path.name for path in tmp_path.glob("*.log")} == {"node-1.log", "node-3.log"}

    def test_an_interrupt_names_what_goes_on_in_guests_and_begins_nothing_more(
        self, servers: list[Sshd], tmp_path: Path
    ) -> None:
        begun = [tmp_path / f"begun-{server.name}" for server in servers]
        go_on = f"until test -e {tmp_path}/end; do sleep 0.1; done"

        def work(shell: Shell) -> None:
            if shell.name == "node-3":
                shell.ask({"only": f"touch {begun[2]}; {go_on}"})
            shell.run(f"touch {tmp_path}/begun-{shell.name}; {go_on}")
            shell.run(f"touch {tmp_path}/never")

        def interrupt() -> None:
            until(lambda: all(each.exists() for each in begun), "not all began")
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

        threading.Thread(target=interrupt).start()
        with pytest.raises(Interrupted) as caught:
            in_each([server.target() for server in servers], tmp_path, FakeClock(), work)
        assert [(each.node, each.log) for each in caught.value.guests] == [
            (name, f"{tmp_path}/{name}.log") for name in ("node-1", "node-2")
        ]
        assert all(f"begun-{each.node}; until test" in each.command for each in caught.value.guests)
        (tmp_path / "end").touch()
        until(lambda: str(tmp_path) not in _processes(), "they never end")
        time.sleep(0.5)  # in which a command that follows would begin
        assert not (tmp_path / "never").exists()

    def test_waiting_ends_when_all_answer_or_tells_who_does_not(self, servers: list[Sshd]) -> None:
        targets = [server.target() for server in servers]
        assert wait_for(targets, 60, FakeClock()) == {}
        targets[2] = at_port(targets[2], 1)
        (error,) = wait_for(targets, 60, FakeClock()).values()
        assert error.target == "node-3"
        assert "refused" in error.message


def _ignore(_data: bytes) -> None:
    pass


def _processes() -> str:
    return subprocess.run(["ps", "-eo", "args"], check=True, capture_output=True, text=True).stdout
