"""Every way in to a guest over SSH, and who is refused on it, against real OpenSSH servers."""

from __future__ import annotations

import socket
import subprocess
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tests.fakes.clock import FakeClock
from tests.integration.shells import open_shell
from tests.integration.sshd import SUDO_PASSWORD, Sshd
from tests.integration.ways import SECRET, at_port, failure, refused, server, servers, shell, told
from tests.waiting import until
from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.ssh.keys.key_pairs import key_pair
from vsphere_ml.ssh.keys.known_hosts import KnownHosts
from vsphere_ml.ssh.session.connect import close, connect

if TYPE_CHECKING:
    import pytest

    from vsphere_ml.ssh.session.shell import SshShell
    from vsphere_ml.ssh.session.target import SshTarget

__all__ = ["server", "servers", "shell"]


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
            error = refused(at_port(target, mute.getsockname()[1]))
        assert error.code == "guest.timeout"

    def test_something_else_than_ssh_listens(self, server: Sshd) -> None:
        with socket.create_server((server.host, 0)) as other:
            answering = threading.Thread(target=_answer_once, args=(other, b"HTTP/1.1 400 Bad Request\r\n\r\n"))
            answering.start()
            error = refused(at_port(server.target(timeout_s=60.0), other.getsockname()[1]))
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
            until((tmp_path / "agent").exists, "no agent answers")
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
        target = at_port(servers[2].target(jump=servers[1].target()), 1)
        error = refused(target)
        assert error.code == "guest.unreachable"
        assert "through node-2" in error.message

    def test_an_unknown_jump_host_is_named(self, servers: list[Sshd], tmp_path: Path) -> None:
        jump = servers[1].target(KnownHosts(tmp_path / "none"))
        error = refused(servers[2].target(jump=jump))
        assert (error.code, error.target) == ("guest.host-key-unknown", "node-2")


class TestUser:
    def test_a_command_of_the_user_s_needs_no_sudo(self, server: Sshd, tmp_path: Path) -> None:
        with open_shell(server.target(user="barred"), tmp_path / "log", FakeClock()) as shell:
            assert shell.run("id -un", as_root=False).text == "barred"

    def test_the_password_for_sudo_is_not_sent_to_it(self, server: Sshd, tmp_path: Path) -> None:
        target = server.target(user="asked", sudo_password=SUDO_PASSWORD)
        with open_shell(target, tmp_path / "log", FakeClock()) as shell:
            assert shell.run("cat", stdin="only this", as_root=False) == CommandAnswer(0, "only this")

    def test_a_login_shell_that_runs_no_commands(self, server: Sshd, tmp_path: Path) -> None:
        with open_shell(server.target(user="mute"), tmp_path / "log", FakeClock()) as shell:
            error = failure(lambda: shell.run("id", as_root=False))
        assert (error.code, error.target) == ("guest.no-shell", "node-1")
        assert any("not available" in line for line in error.details), "nologin says so on standard output"
        assert "usermod --shell /bin/bash mute" in (error.hint or "")


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
            assert shell.run("cat", stdin="only this") == CommandAnswer(0, "only this")
            assert shell.ask({"it": "echo fine"})["it"] == CommandAnswer(0, "fine\n")


def _at_host(target: SshTarget, host: str) -> SshTarget:
    return replace(target, host=host)


def _answer_once(listening: socket.socket, text: bytes) -> None:
    stream, _ = listening.accept()
    with stream:
        stream.sendall(text)


def _sign_ins(server: Sshd) -> int:
    return (server.folder / "sshd.log").read_text().count("Accepted publickey")
