"""Runs a command's body and turns whatever comes of it into output and an exit status."""

from __future__ import annotations

import signal
import traceback
from typing import TYPE_CHECKING, Never

from vsphere_ml.cli.options import GlobalOptions, Output, wants_json
from vsphere_ml.cli.terminal import Answer, show, terminal
from vsphere_ml.cli.views.layout import envelope
from vsphere_ml.core.errors import ConfigError, VsmlError

if TYPE_CHECKING:
    from collections.abc import Callable

    from vsphere_ml.cli.terminal import Terminal

BUG = 1
DIFFERENCES = 7
INTERRUPTED = 130


class _Interruption(VsmlError):  # noqa: N818 - reads as what it says
    """The person, or the system, ended the run."""

    status = INTERRUPTED


class Bug(VsmlError):  # noqa: N818 - reads as what it says
    """Something vsml did not foresee."""

    status = BUG


def run(name: str, settings: GlobalOptions, body: Callable[[Terminal], Answer[object]]) -> int:
    """Return the exit status of this command, after its answer or its error was shown."""
    _end_like_ctrl_c()
    shell = terminal(settings)
    try:
        answer = body(shell)
    except VsmlError as error:
        return fail(shell, name, error)
    except KeyboardInterrupt as interrupt:
        return fail(shell, name, _interruption(interrupt))
    except Exception as error:  # noqa: BLE001 - the one place that may: the top of the command line
        return fail(shell, name, _bug(error))
    _show(shell, name, answer)
    return _report_unwritten(shell) or answer.status


def fail(shell: Terminal, name: str, error: VsmlError) -> int:
    """Show an error that ended the command, and return its status."""
    from vsphere_ml.cli.views.layout import error as view

    if shell.settings.debug:
        shell.err.print("".join(traceback.format_exception(error)), end="")
    show(shell.err, view.text(error, code=shell.settings.verbose))
    if shell.settings.output is Output.JSON:
        shell.out.file.write(envelope.failure(name, error, shell.messages))
        shell.out.file.flush()
    return error.status


def _show(shell: Terminal, name: str, answer: Answer[object]) -> None:
    from vsphere_ml.cli.views.layout import error as view

    if shell.settings.output is Output.JSON:
        shell.out.file.write(envelope.success(name, answer, shell.messages))
        shell.out.file.flush()
    elif answer.text != "":
        show(shell.out, answer.text)
    for error in answer.errors:
        show(shell.err, view.text(error, code=shell.settings.verbose))


def _report_unwritten(shell: Terminal) -> int:
    """Return the status of an answer that could not be written, after saying so; 0 when it was."""
    from vsphere_ml.cli.views.layout import error as view

    if shell.lost is None:
        return 0
    error = ConfigError(
        f"the answer cannot be written to stdout: {shell.lost.strerror or shell.lost}",
        code="output.unwritable",
        hint="the command itself completed; `vsml status` shows the result",
    )
    show(shell.err, view.text(error, code=shell.settings.verbose))
    return error.status


def _interruption(interrupt: KeyboardInterrupt) -> _Interruption:
    from vsphere_ml.cli.views.cluster.changes import list_names, verb
    from vsphere_ml.core.order import fold_rows
    from vsphere_ml.core.plan.changes import PowerOn
    from vsphere_ml.core.plan.describe import is_off, object_name
    from vsphere_ml.core.plan.outcome import HostsInterrupted, Interrupted, left_off

    if isinstance(interrupt, Interrupted):
        alike = fold_rows((object_name(each), verb(each)) for each in interrupt.running)
        in_vcenter = (f"still running in vCenter: {list_names(names)}: {what}" for names, what in alike)
        in_guests = (f"may go on in {each.node}: {each.command}; log: {each.log}" for each in interrupt.guests)
        starting = {each.vm for each in interrupt.running if isinstance(each, PowerOn)}
        off = (is_off(vm) for vm in left_off(interrupt.outcomes) if vm not in starting)
        left: tuple[str, ...] = (*in_vcenter, *in_guests, *off)
    elif isinstance(interrupt, HostsInterrupted):
        left = interrupt.left
    else:
        return _Interruption("interrupted", code="interrupted")
    hint = "run the same command again to resume"
    return _Interruption("interrupted", code="interrupted", hint=hint, details=left)


def _bug(error: Exception) -> Bug:
    # Messages of strange exceptions can span lines; the first one says what it is.
    cause = (str(error).strip().splitlines() or [""])[0]
    bug = Bug(
        f"this is a bug of vsml: {type(error).__name__}{': ' if cause else ''}{cause}",
        code="bug",
        hint="run it again with --debug, and report what that prints",
    )
    bug.__cause__ = error
    return bug


def _end_like_ctrl_c() -> None:
    # A run that is ended by a signal gives its lock back and says what still runs, as with Ctrl-C.
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _interrupt)


def _interrupt(_number: int, _frame: object) -> Never:
    raise KeyboardInterrupt


def usage(arguments: list[str], message: str, command_path: str) -> int:
    """Show what is wrong with the command line itself, in the form that it asks for."""
    if not message:  # no command at all: the help was shown instead
        return ConfigError.status
    message = message[:1].lower() + message[1:].rstrip(".")
    error = ConfigError(message, code="usage", hint=f"{command_path} --help")
    return fail(_shell(arguments), " ".join(command_path.split()[1:]), error)


def cut(arguments: list[str]) -> int:
    """Show that Ctrl-C came before a command had begun, in the form that the command line asks for."""
    return fail(_shell(arguments), "", _interruption(KeyboardInterrupt()))


def _shell(arguments: list[str]) -> Terminal:
    return terminal(GlobalOptions(output=Output.JSON if wants_json(arguments) else Output.TABLE))
