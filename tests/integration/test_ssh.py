"""vsml against real OpenSSH servers: every way in, and everything that goes wrong on it."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.fakes.clock import FakeClock
from tests.integration.sshd import SUDO_PASSWORD, Sshd, running
from vsphere_ml.core.errors import GuestError, VsmlError
from vsphere_ml.core.guest import Answer, Sensitive
from vsphere_ml.ssh import files
from vsphere_ml.ssh.connect import close, connect
from vsphere_ml.ssh.execute import Cut, execute
from vsphere_ml.ssh.fanout import in_each
from vsphere_ml.ssh.keys import key_pair
from vsphere_ml.ssh.known_hosts import KnownHosts
from vsphere_ml.ssh.reach import wait_for
from vsphere_ml.ssh.shell import SshShell, open_shell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vsphere_ml.ssh.target import SshTarget

SECRET = Sensitive("t0ken-of-the-licence-server")


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Sshd]]:
    with running(tmp_path_factory.mktemp("sshd"), 3) as started:
        yield started


@pytest.fixture
def server(servers: list[Sshd]) -> Iterator[Sshd]:
    """Return one that a test may stop."""
    yield servers[0]
    if servers[0].process is None:
        servers[0].start()


@pytest.fixture
def shell(server: Sshd, tmp_path: Path) -> Iterator[SshShell]:
    with open_shell(server.target(), tmp_path / "node-1.log", FakeClock()) as opened:
        yield opened


def refused(target: SshTarget) -> GuestError:
    with pytest.raises(GuestError) as caught:
        close(connect(target))
    return caught.value


def failure(call: Callable[[], object]) -> GuestError:
    with pytest.raises(GuestError) as caught:
        call()
    return caught.value


def told(error: VsmlError) -> str:
    return "\n".join([error.message, error.hint, error.target, *error.details, str(error.__cause__)])


def until(seen: Callable[[], bool]) -> None:
    for _ in range(1000):
        if seen():
            return
        time.sleep(0.01)
    raise AssertionError("it did not come to pass within 10 s")


class TestSigningIn:
    def test_small_messages_are_sent_at_once(self, server: Sshd) -> None:
        connection = connect(server.target())
        assert connection.transport.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        close(connection)

    def test_nothing_listens(self, server: Sshd) -> None:
        server.stop()
        error = refused(server.target())
        assert error.code == "guest.unreachable"
        assert "connection refused" in error.message
        assert f"-p {server.port}" in error.hint

    def test_something_listens_and_says_nothing(self, server: Sshd) -> None:
        with socket.create_server((server.host, 0)) as mute:
            target = server.target(KnownHosts(Path("/nowhere")), timeout_s=1.0)
            error = refused(_at_port(target, mute.getsockname()[1]))
        assert error.code == "guest.timeout"

    def test_something_else_than_ssh_listens(self, server: Sshd) -> None:
        with socket.create_server((server.host, 0)) as other:
            answering = threading.Thread(target=_answer_once, args=(other, b"HTTP/1.1 400 Bad Request\r\n\r\n"))
            answering.start()
            error = refused(_at_port(server.target(timeout_s=5.0), other.getsockname()[1]))
            answering.join()
        assert error.code == "guest.unreachable"

    def test_a_name_that_does_not_resolve(self, server: Sshd) -> None:
        error = refused(_at_host(server.target(), "no-such-host.invalid"))
        assert (error.code, "resolved" in error.message) == ("guest.unreachable", True)

    def test_a_key_that_the_guest_does_not_know(self, server: Sshd, tmp_path: Path) -> None:
        other = key_pair(tmp_path / "other", "x").private
        error = refused(server.target(key_file=other))
        assert error.code == "guest.sign-in"
        assert str(other) in error.message

    def test_a_key_file_that_is_not_there(self, server: Sshd, tmp_path: Path) -> None:
        error = refused(server.target(key_file=tmp_path / "absent"))
        assert error.code == "guest.key-unusable"

    def test_a_key_file_that_is_none(self, server: Sshd, tmp_path: Path) -> None:
        (tmp_path / "none").write_text("no key\n")
        assert refused(server.target(key_file=tmp_path / "none")).code == "guest.key-unusable"

    def test_a_key_with_a_passphrase(self, server: Sshd, tmp_path: Path) -> None:
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "words", "-f", str(tmp_path / "id")]
        subprocess.run(command, check=True)
        error = refused(server.target(key_file=tmp_path / "id"))
        assert (error.code, "ssh-add" in error.hint) == ("guest.key-unusable", True)

    def test_the_agent_s_keys(self, server: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
        agent = subprocess.Popen(["ssh-agent", "-D", "-a", str(tmp_path / "agent")], stdout=subprocess.DEVNULL)
        try:
            until((tmp_path / "agent").exists)
            assert refused(server.target(key_file=None)).code == "guest.sign-in"
            subprocess.run(["ssh-add", "-q", str(server.key_file)], check=True)
            close(connect(server.target(key_file=None)))
        finally:
            agent.kill()
            agent.wait()

    def test_the_agent_is_not_forwarded(self, shell: SshShell) -> None:
        assert shell.ask({"it": "echo ${SSH_AUTH_SOCK-none}"})["it"].out == "none\n"

    def test_nobody_s_ssh_config_is_followed(
        self, server: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / ".ssh").mkdir()
        (tmp_path / ".ssh" / "config").write_text("Host *\n  HostName 127.0.0.99\n  nonsense\n")
        (tmp_path / ".fabric.yaml").write_text("user: nobody\nforward_agent: true\n")
        monkeypatch.setenv("HOME", str(tmp_path))
        close(connect(server.target()))


class TestHostKeys:
    def test_a_changed_key_is_refused_before_anything_is_sent(self, server: Sshd, tmp_path: Path) -> None:
        known = KnownHosts(tmp_path / "known_hosts")
        known.pin(server.host, server.port, [server.host_key], comment="")
        server.stop()
        server.new_host_key()
        server.start()
        before = _sign_ins(server)
        error = refused(server.target(known))
        assert error.code == "guest.host-key-changed"
        assert f"'[{server.host}]:{server.port}'" in error.hint
        assert server.host_key.fingerprint in error.details[0]
        assert _sign_ins(server) == before
        close(connect(server.target()))
        assert _sign_ins(server) == before + 1

    def test_an_unknown_key_is_refused(self, server: Sshd, tmp_path: Path) -> None:
        error = refused(server.target(KnownHosts(tmp_path / "known_hosts")))
        assert error.code == "guest.host-key-unknown"
        assert server.host_key.fingerprint in error.details[0]

    def test_first_use_is_recorded_and_then_holds_for_openssh_too(self, server: Sshd, tmp_path: Path) -> None:
        known = KnownHosts(tmp_path / "known_hosts")
        close(connect(server.target(known, trust_first_use=True)))
        close(connect(server.target(known)))
        command = ["ssh", "-F", "none", "-o", "BatchMode=yes", "-o", f"UserKnownHostsFile={known.path}"]
        command += ["-i", str(server.key_file), "-p", str(server.port), f"root@{server.host}", "echo in"]
        assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "in\n"

    def test_the_host_is_asked_for_the_kind_of_key_it_is_pinned_to(self, server: Sshd, tmp_path: Path) -> None:
        known = KnownHosts(tmp_path / "known_hosts")
        known.pin(server.host, server.port, [server.rsa_host_key], comment="")
        close(connect(server.target(known)))

    def test_a_fingerprint_lets_that_host_in(self, server: Sshd, tmp_path: Path) -> None:
        known = KnownHosts(tmp_path / "known_hosts")
        assert refused(server.target(known, fingerprint="SHA256:abc")).code == "guest.host-key-unknown"
        close(connect(server.target(known, fingerprint=server.host_key.fingerprint)))


class TestJumpHost:
    def test_a_guest_behind_another(self, servers: list[Sshd], tmp_path: Path) -> None:
        jump, guest = servers[1], servers[2]
        before = _sign_ins(jump)
        with open_shell(guest.target(jump=jump.target()), tmp_path / "log", FakeClock()) as shell:
            assert shell.run("cat", stdin="through").out == "through"
        assert _sign_ins(jump) == before + 1

    def test_the_guest_s_own_key_is_verified_through_it(self, servers: list[Sshd], tmp_path: Path) -> None:
        target = servers[2].target(KnownHosts(tmp_path / "none"), jump=servers[1].target())
        assert refused(target).code == "guest.host-key-unknown"

    def test_a_guest_that_the_jump_host_does_not_reach(self, servers: list[Sshd]) -> None:
        target = _at_port(servers[2].target(jump=servers[1].target()), 1)
        error = refused(target)
        assert error.code == "guest.unreachable"
        assert "through node-2" in error.message

    def test_an_unknown_jump_host_is_named(self, servers: list[Sshd], tmp_path: Path) -> None:
        jump = servers[1].target(KnownHosts(tmp_path / "none"))
        error = refused(servers[2].target(jump=jump))
        assert (error.code, error.target) == ("guest.host-key-unknown", "node-2")


class TestSudo:
    def test_a_user_without_a_rule(self, server: Sshd, tmp_path: Path) -> None:
        with open_shell(server.target(user="barred"), tmp_path / "log", FakeClock()) as shell:
            error = failure(lambda: shell.ask({"it": "id"}))
        assert (error.code, error.target) == ("guest.sudo", "node-1")

    def test_no_password_where_one_is_asked_for(self, server: Sshd, tmp_path: Path) -> None:
        with open_shell(server.target(user="asked"), tmp_path / "log", FakeClock()) as shell:
            error = failure(lambda: shell.run("id"))
        assert error.code == "guest.sudo"
        assert any("password is required" in line for line in error.details)

    def test_a_wrong_password_is_told_and_not_shown(self, server: Sshd, tmp_path: Path) -> None:
        target = server.target(user="asked", sudo_password=SECRET)
        with open_shell(target, tmp_path / "log", FakeClock()) as shell:
            error = failure(lambda: shell.ask({"it": "id"}))
        assert error.code == "guest.sudo"
        assert SECRET.reveal() not in told(error)

    def test_a_password_that_is_not_asked_for_is_no_command(self, server: Sshd, tmp_path: Path) -> None:
        target = server.target(user="free", sudo_password=SUDO_PASSWORD)
        with open_shell(target, tmp_path / "log", FakeClock()) as shell:
            assert shell.run("cat", stdin="only this") == Answer(0, "only this")
            assert shell.ask({"it": "echo fine"})["it"] == Answer(0, "fine\n")


class TestTrouble:
    def test_a_connection_that_is_cut_in_mid_command(self, shell: SshShell, server: Sshd, tmp_path: Path) -> None:
        marker = tmp_path / "begun"

        def cut() -> None:
            until(marker.exists)
            server.cut()

        cutter = threading.Thread(target=cut)
        cutter.start()
        error = failure(lambda: shell.run(f"touch {marker}; sleep 60"))
        cutter.join()
        assert (error.code, error.target) == ("guest.connection-lost", "node-1")
        assert "may still go on" in error.message
        assert shell.ask({"again": "echo back"})["again"].out == "back\n"

    def test_a_connection_that_is_gone_already(self, server: Sshd) -> None:
        connection = connect(server.target())
        connection.transport.close()
        with pytest.raises(Cut):
            execute(connection.transport, "true", b"", deadline_s=5, out=_ignore, err=_ignore)
        close(connection)

    def test_new_folders_can_be_entered_by_everybody(self, shell: SshShell, tmp_path: Path) -> None:
        shell.write(f"{tmp_path}/a/b/file", "x", mode=0o600)
        assert [(tmp_path / each).stat().st_mode & 0o777 for each in ("a", "a/b")] == [0o755, 0o755]

    def test_a_file_that_arrives_in_part_is_as_it_was(self, shell: SshShell, tmp_path: Path) -> None:
        path = tmp_path / "there" / "file"
        shell.write(str(path), "old")
        error = failure(lambda: shell.run(files.replace(str(path), 1000, 0o644, "root:root"), stdin="new"))
        assert error.details == ("3 of 1000 bytes arrived",)
        assert path.read_text() == "old"
        assert list(path.parent.iterdir()) == [path]

    def test_a_command_that_takes_too_long_is_ended_in_the_guest(self, shell: SshShell, tmp_path: Path) -> None:
        error = failure(lambda: shell.run(f"echo begun; sleep 77.{os.getpid()}", timeout_s=1))
        assert error.code == "guest.timeout"
        assert error.details == ("begun",)
        assert f"sleep 77.{os.getpid()}" not in _processes()

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
        assert shell.run("exec <&-; echo done", stdin="x" * 5_000_000) == Answer(0, "done\n")

    def test_a_full_disk_leaves_the_file_as_it_was(self, shell: SshShell, tmp_path: Path) -> None:
        place = tmp_path / "small"
        shell.run(f"mkdir {place} && mount -t tmpfs -o size=64k tmpfs {place} && echo old >{place}/file")
        error = failure(lambda: shell.write(f"{place}/file", "x" * 200_000))
        assert error.code == "guest.file-not-written"
        assert "No space left" in told(error)
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
        assert error.code == "guest.not-back"
        assert "it answers, and has not rebooted" in error.message
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
        assert "sudo" in seen.read_text()
        for text in (seen.read_text(errors="replace"), log.read_text(), told(error)):
            assert SECRET.reveal() not in text
            assert SUDO_PASSWORD.reveal() not in text
        assert "***" in log.read_text()
        assert (tmp_path / "token").read_text() == SECRET.reveal()

    def test_the_log_has_every_line_with_its_time(self, shell: SshShell) -> None:
        shell.run("echo one; echo two >&2; printf three")
        lines = [line.split(" ", 1) for line in shell.log.read_text().splitlines()]
        assert all(re.match(r"\d{4}-\d\d-\d\dT", time) for time, _ in lines)
        assert sorted(rest for _, rest in lines) == sorted(
            ["$ echo one; echo two >&2; printf three", "< one", "! two", "< three", "= status 0"]
        )
        assert shell.log.stat().st_mode & 0o777 == 0o600


class TestMany:
    def test_one_guest_s_failure_leaves_the_others_alone(self, servers: list[Sshd], tmp_path: Path) -> None:
        targets = [server.target() for server in servers]
        targets[1] = _at_port(targets[1], 1)
        results = in_each(targets, tmp_path, FakeClock(), lambda shell: shell.run(f"echo {shell.name}").out)
        assert (results["node-1"], results["node-3"]) == ("node-1\n", "node-3\n")
        assert isinstance(results["node-2"], GuestError)
        assert {path.name for path in tmp_path.glob("*.log")} == {"node-1.log", "node-3.log"}

    def test_waiting_ends_when_all_answer_or_tells_who_does_not(self, servers: list[Sshd]) -> None:
        targets = [server.target() for server in servers]
        assert wait_for(targets, 10, FakeClock()) == {}
        targets[2] = _at_port(targets[2], 1)
        (error,) = wait_for(targets, 10, FakeClock()).values()
        assert error.target == "node-3"
        assert "refused" in error.message


def _at_port(target: SshTarget, port: int) -> SshTarget:
    return replace(target, port=port)


def _at_host(target: SshTarget, host: str) -> SshTarget:
    return replace(target, host=host)


def _ignore(_data: bytes) -> None:
    pass


def _answer_once(listening: socket.socket, text: bytes) -> None:
    stream, _ = listening.accept()
    with stream:
        stream.sendall(text)


def _processes() -> str:
    return subprocess.run(["ps", "-eo", "args"], check=True, capture_output=True, text=True).stdout


def _sign_ins(server: Sshd) -> int:
    return (server.folder / "sshd.log").read_text().count("Accepted publickey")
