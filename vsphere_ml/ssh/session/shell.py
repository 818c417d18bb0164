"""A guest over SSH that can be asked, and changed."""

from __future__ import annotations

import shlex
from collections import deque
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Self

from vsphere_ml.core.errors import GuestError
from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.core.secret import Secret
from vsphere_ml.ssh.session import batch, become, errors, files, reboot
from vsphere_ml.ssh.session.connect import close, connect
from vsphere_ml.ssh.session.execute import ConnectionCut, DeadlinePassed, execute
from vsphere_ml.ssh.session.log import GuestLog, LogLines, Secrets
from vsphere_ml.ssh.session.printed import Printed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from types import TracebackType

    import fabric

    from vsphere_ml.core.ports.vcenter import Clock
    from vsphere_ml.ssh.session.become import Call
    from vsphere_ml.ssh.session.target import SshTarget

LAST_LINES = 20
GRACE_S = 30.0  # for the guest to end a command that takes too long, before we stop listening


class SshShell:
    """A `Shell` over one connection, which it opens again when it was lost between two commands.

    One thread opens, uses and closes it.
    """

    def __init__(self, target: SshTarget, log: Path, clock: Clock) -> None:
        self._target = target
        self._clock = clock
        self._secrets = Secrets()
        self._log = GuestLog(log, self._secrets)
        self._connection: fabric.Connection | None = None
        self._doing = ""
        self._left = False
        if target.sudo_password is not None:
            self._secrets.add(target.sudo_password)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: object, _trace: TracebackType | None) -> None:
        self.close()

    @property
    def name(self) -> str:
        return self._target.name

    @property
    def target(self) -> SshTarget:
        return self._target

    @property
    def log(self) -> Path:
        return self._log.path

    def open(self) -> fabric.Connection:
        if self._left:
            raise errors.cut(self._target, self._doing or "signing in")
        if self._connection is None or not self._connection.is_connected:
            self.close()
            self._connection = connect(self._target)
        return self._connection

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            close(connection)

    def leave(self) -> str:
        """Let no further command begin, from any thread; return the one that runs, empty when none does."""
        self._left = True
        return errors.shorten_command(self._doing)

    def ask(self, commands: Mapping[str, str]) -> Mapping[str, CommandAnswer]:
        """Return each snippet's answer; one round trip. See `Probe.ask`."""
        if not commands:
            return {}
        what = f"{len(commands)} questions" if len(commands) > 1 else "one question"
        printed = Printed(2 * len(commands) * batch.LIMIT + batch.LIMIT)
        call = become.for_script(self._target, batch.script(list(commands.values())))
        self._execute(call, printed, what, self._target.timeout_s + batch.SNIPPET_S)
        try:
            answers = batch.name_answers(commands, batch.read(printed.all_out, len(commands)))
        except batch.UnexpectedOutput as error:
            raise errors.unexpected_output_error(self._target, what, self._secrets.hide(printed.last_words)) from error
        self._log.add("?", ", ".join(f"{name}: {answer.status}" for name, answer in answers.items()))
        return answers

    def run(
        self, command: str, *, stdin: Secret | str | None = None, timeout_s: float = 1800.0, as_root: bool = True
    ) -> CommandAnswer:
        """Return what the command said; GuestError `guest.command-failed` when it failed. See `Shell.run`."""
        answer, last = self._run(command, stdin, timeout_s, as_root=as_root)
        if not answer.ok:
            raise errors.command_error(self._target, self._secrets.hide(command), answer.status, last, self._log.path)
        return answer

    def write(self, path: str, text: Secret | str, *, mode: int = 0o644, owner: str = "root:root") -> None:
        """Replace a file as a whole, or leave it as it was. See `Shell.write`."""
        size = len(become.encode_text(text))
        answer, last = self._run(files.replace(path, size, mode, owner), text, files.WRITE_S, shown=f"write {path}")
        if not answer.ok:
            raise errors.not_written(self._target, path, last)

    def put(self, local: Path, path: str, *, mode: int = 0o644) -> None:
        """Copy a local file to the guest. See `Shell.put`."""
        size = files.size_of(local)
        staged = self._staged(path)
        try:
            with self._busy(f"put {path}"):
                files.send(self.open(), self._target, local, staged)
        except GuestError:
            with suppress(GuestError):  # the first error is the one to report
                self._run(f"rm -f -- {shlex.quote(staged)}", None, files.WRITE_S)
            raise
        answer, last = self._run(files.settle(staged, path, size, mode), None, files.WRITE_S, shown=f"put {path}")
        if not answer.ok:
            raise errors.not_written(self._target, path, last)

    def get(self, path: str, local: Path) -> None:
        """Copy a file of the guest's to this machine. See `Shell.get`."""
        answer, last = self._run(files.copy(path, self._target.user), None, files.COPY_S, shown=f"get {path}")
        if not answer.ok:
            raise errors.not_read(self._target, path, last)
        try:
            with self._busy(f"get {path}"):
                files.receive(self.open(), self._target, answer.text, local)
        finally:
            if answer.text != path:
                with suppress(GuestError):  # the first error is the one to report
                    self._run(f"rm -f -- {shlex.quote(answer.text)}", None, files.WRITE_S)

    def reboot(self, deadline_s: float = 900.0) -> None:
        """Reboot and return when the guest answers with another boot id. See `Shell.reboot`."""
        with self._busy("reboot"):
            reboot.reboot(self, self._clock, deadline_s)

    @contextmanager
    def _busy(self, what: str) -> Iterator[None]:
        """Keep what is done in the guest, the whole of it rather than its parts."""
        before, self._doing = self._doing, self._doing or what
        try:
            yield
        finally:
            self._doing = before

    def _staged(self, path: str) -> str:
        """Return the name of a new file in the guest that the SSH user may fill."""
        answer, last = self._run(files.stage(path, self._target.user), None, files.WRITE_S, shown=f"stage {path}")
        if not answer.ok:
            raise errors.not_written(self._target, path, last)
        return answer.text

    def _run(
        self, command: str, stdin: Secret | str | None, timeout_s: float, *, shown: str = "", as_root: bool = True
    ) -> tuple[CommandAnswer, tuple[str, ...]]:
        """Return the answer and the last lines of both outputs; each line goes to the log when it comes."""
        if isinstance(stdin, Secret):
            self._secrets.add(stdin)
        shown = shown or self._secrets.hide(command)
        self._log.add("$", shown)
        last: deque[str] = deque(maxlen=LAST_LINES)
        printed = Printed(batch.LIMIT, self._lines("<", last), self._lines("!", last))
        call = become.for_command(self._target, command, stdin, timeout_s, as_root=as_root)
        with self._busy(shown):
            status = self._execute(call, printed, shown, timeout_s + GRACE_S)
        if status == files.TIMED_OUT and printed.seconds >= timeout_s:
            raise errors.timeout_error(self._target, shown, timeout_s, tuple(last))
        out, err = (self._secrets.hide(text) for text in printed.texts())
        self._log.add("=", f"status {status}")
        return CommandAnswer(status, out, err), tuple(last)

    def _lines(self, kind: str, last: deque[str]) -> LogLines:
        def take(line: str) -> None:
            last.append(line)
            self._log.add(kind, line)

        return LogLines(self._secrets, take)

    def _execute(self, call: Call, printed: Printed, what: str, deadline_s: float) -> int:
        transport = self.open().transport
        printed.expect(call.mark)
        try:
            status = execute(transport, call.line, call.stdin, deadline_s=deadline_s, out=printed.out, err=printed.err)
        except ConnectionCut as error:
            raise errors.cut(self._target, what) from error
        except DeadlinePassed as error:
            self.close()
            raise errors.timeout_error(self._target, what, deadline_s) from error
        finally:
            printed.end()
        if not printed.begun:
            words = self._secrets.hide(printed.last_words)
            raise errors.not_root(self._target, words) if call.by_sudo else errors.no_shell(self._target, words)
        return status
