"""Errors on terminals of 60, 80 and 120 columns: what can be typed stands in one line, and no word is broken."""

from __future__ import annotations

import io
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import paramiko
import pytest

from tests.unit.cli.views.test_screens import INDENT
from vsphere_ml.cli.options import GlobalOptions
from vsphere_ml.cli.terminal import console, show
from vsphere_ml.cli.views.layout import error as view
from vsphere_ml.core.errors import GuestError
from vsphere_ml.core.hints import CommandLine, Hint, hint_parts
from vsphere_ml.flows.guests.configure import ConfigureResult, GuestPlan, GuestResult
from vsphere_ml.ssh.keys.host_keys import HostKey
from vsphere_ml.ssh.keys.known_hosts import KnownHosts
from vsphere_ml.ssh.keys.verify import verify
from vsphere_ml.ssh.session import errors
from vsphere_ml.ssh.session.sign_in import translate
from vsphere_ml.ssh.session.target import SshTarget

if TYPE_CHECKING:
    from tests.golden import Golden
    from vsphere_ml.core.errors import VsmlError

STATE = Path("/home/administrator/.local/state/vsml/guests/train")
TARGET = SshTarget(
    name="node-1",
    host="10.0.0.11",
    known_hosts=KnownHosts(STATE / "known_hosts"),
    user="ubuntu",
    key_file=STATE / "a key",
)
BOOK = CommandLine("apt-get install -y --no-install-recommends chrony rdma-core")


def key(seed: int) -> HostKey:
    kind = b"ssh-ed25519"
    return HostKey(kind.decode(), len(kind).to_bytes(4, "big") + kind + bytes([seed]) * 32)


def unknown_key() -> GuestError:
    with pytest.raises(GuestError) as raised:
        verify(TARGET, key(2))
    return raised.value


def changed_key(folder: Path) -> GuestError:
    known = KnownHosts(folder / "of a cluster with a long name" / "known_hosts")
    known.pin(TARGET.host, TARGET.port, [key(1)], comment="node-1")
    target = SshTarget(name="node-1", host=TARGET.host, known_hosts=known)
    with pytest.raises(GuestError) as raised:
        verify(target, key(2))
    return raised.value


def unfinished() -> VsmlError:
    guest = GuestResult(node="node-1", error=translate(ConnectionRefusedError(), TARGET), log=str(STATE / "node-1.log"))
    plan = GuestPlan(cluster="train", playbooks=(), guests=(guest,))
    found = ConfigureResult(plan=plan, applied=False, guests=(guest,)).error
    assert found is not None
    return found


ERRORS = {
    "a command that failed": errors.command_error(TARGET, BOOK, 100, ("E: 404",), STATE / "logs" / "node-1.log"),
    "a connection that broke": errors.cut(TARGET, BOOK),
    "a guest that was not configured": unfinished(),
    "a key with a passphrase": translate(paramiko.PasswordRequiredException(), TARGET),
    "a shell that answers nothing": errors.no_shell(TARGET, ""),
    "a sign-in that is refused": translate(paramiko.AuthenticationException("no"), TARGET),
    "a host key that is not known": unknown_key(),
    "no answer": translate(TimeoutError(), TARGET),
}


def drawn(error: VsmlError, width: int) -> str:
    out = io.StringIO()
    screen = console(out, GlobalOptions(no_color=True))
    screen.width = width
    show(screen, view.text(error))
    return out.getvalue()


def typed(*hints: str) -> list[str]:
    return [part for hint in hints for part in hint_parts(hint) if isinstance(part, CommandLine)]


def assert_whole(error: VsmlError, width: int) -> str:
    """Fail when what can be typed is broken, or a word; return the screen."""
    text = drawn(error, width)
    hints = [error.hint, *(each for each in error.details if isinstance(each, Hint))]
    commands = typed(*hints)
    assert commands
    assert [each for each in commands if not any(each in line for line in text.splitlines())] == []
    assert {*text.split()} == {*drawn(error, 1000).split()}
    beyond = [line.strip().rstrip(",;") for line in text.splitlines() if len(line) > width]
    assert all(line in commands or " " not in line for line in beyond), "nothing else goes beyond the edge"
    return text


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", ERRORS)
def test_what_can_be_typed_stands_in_one_line(name: str, width: int, golden: Golden) -> None:
    golden(assert_whole(ERRORS[name], width))


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_command_that_forgets_a_key_stands_in_one_line(width: int, tmp_path: Path) -> None:
    text = assert_whole(changed_key(tmp_path), width)
    command = next(line for line in text.splitlines() if "ssh-keygen -R" in line)
    assert shlex.split(command)[-1].endswith("known_hosts")


def test_where_all_fits_nothing_is_moved() -> None:
    error = GuestError("no luck", code="guest.timeout", hint="`uptime` says more")
    assert drawn(error, INDENT + 20) == drawn(error, 1000)
