"""Starts and stops a lab vCenter as a process that outlives the command."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import ConfigError, NotPossible, VsmlError
from vsphere_ml.core.nearest import nearest_name
from vsphere_ml.core.site_record.exchanges import read_manifest
from vsphere_ml.lab import build, folders, state
from vsphere_ml.lab import topology as sites
from vsphere_ml.lab.guests import folder, hub, image, needs
from vsphere_ml.lab.guests.boot import power_hook
from vsphere_ml.lab.guests.repository import datastores, packages

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DEFAULT_TOPOLOGY = "quad-8.0u3"
START_DEADLINE_S = 120.0  # ten thousand VMs take a while to make
STOP_DEADLINE_S = 10.0
LOG_LINES = 10
OTHER_PORT = "leave out --port for any free one"
BAD_TOPOLOGY = 2  # the program's exit status


def topologies() -> dict[str, Path]:
    """Return the sites that ship, by name."""
    return {path.stem: path for path in sorted(state.TOPOLOGIES.glob("*.toml"))}


def topology_file(name: str) -> Path:
    """Return a topology's file, given by name or path, or a site record's folder; ConfigError when there is none."""
    shipped = topologies()
    if name in shipped:
        return shipped[name]
    path = Path(name).expanduser()
    if path.is_file() or path.is_dir():
        return path.absolute()
    near = nearest_name(name, shipped)
    raise ConfigError(
        f"there is no topology `{name}`",
        code="lab.unknown-topology",
        target=name,
        hint=f"did you mean `{near}`?" if near else f"use one of {', '.join(shipped)}, or the path of a TOML file",
    )


def start_lab(
    topology: str = DEFAULT_TOPOLOGY,
    name: str = state.DEFAULT,
    port: int = 0,
    say: Callable[[str], None] = build.to_stderr,
    *,
    guests: bool = False,
) -> tuple[state.Lab, bool]:
    """Return the lab and whether it was started now; one that runs already is left as it is.

    With `guests` its VMs have Linux guests; NotPossible `lab.no-guests` where there can be none.
    """
    if guests:
        needs.check()
    file = topology_file(topology)
    check_source(file, guests=guests)
    home = state.folder(name)
    with folders.hold_lock(home.with_name(f".{name}.lock")):
        if (lab := state.find(name)) is not None:
            _same_topology(lab, file)
            _same_guests(lab, guests=guests)
            return lab, False
        program = build.binary(say)
        images = image.for_topology(file, say) if guests else {}
        _sweep(home)
        return _start(program, file, home, port, images), True


def check_source(source: Path, *, guests: bool) -> None:
    """Refuse a topology that is no TOML, a folder that is no site record, and guests of a record; ConfigError."""
    if not source.is_dir():
        sites.read(source)
        return
    read_manifest(source)
    if guests:
        raise ConfigError(
            "a site record has no guests to stand up",
            code="usage",
            target="--guests",
            hint="leave out --guests, or name a topology",
        )


def stop_lab(name: str = state.DEFAULT) -> bool:
    """Stop the lab and remove what it kept; return whether one ran."""
    home = state.folder(name)
    if not home.is_dir():
        return False
    with folders.hold_lock(home.with_name(f".{name}.lock")):
        lab = state.find(name)
        _sweep(home)
    return lab is not None


def _same_topology(lab: state.Lab, file: Path) -> None:
    if lab.topology != str(file):
        raise NotPossible(
            f"the lab vCenter `{lab.name}` runs another topology: {lab.topology}",
            code="lab.other-topology",
            target=lab.name,
            hint=f"{down_command(lab.name)}, or start this one beside it with --name",
        )


def _same_guests(lab: state.Lab, *, guests: bool) -> None:
    if guests and not lab.has_guests:
        raise NotPossible(
            f"the lab vCenter `{lab.name}` runs, and its VMs have no guests",
            code="lab.no-guests",
            target=lab.name,
            hint=f"{down_command(lab.name)}, then start it again",
        )


def down_command(name: str) -> str:
    """Return what to type to stop this lab."""
    return "vsml lab down" if name == state.DEFAULT else f"vsml lab down --name {name}"


def _start(program: Path, topology: Path, home: Path, port: int, images: Mapping[str, Path]) -> state.Lab:
    home.mkdir(parents=True, mode=0o700)
    password = home / "password"
    with os.fdopen(os.open(password, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
        file.write(secrets.token_urlsafe(24) + "\n")
    source = "--record" if topology.is_dir() else "--topology"
    arguments = [str(program), "serve", source, str(topology), "--state", str(home)]
    arguments += ["--listen", f"127.0.0.1:{port}", "--password-file", str(password)]
    if images:
        folder.make(home / power_hook.GUESTS, packages.driver_version(topology), images)
        arguments += ["--power-hook", str(power_hook.write(home))]
    pid, name = spawn(arguments, home / "log"), home.name
    try:
        lab = _wait_answer(pid, name, home)
        if images:
            datastores.lay(topology, home / power_hook.GUESTS / "packages", home / "datastores")
    except BaseException:
        _sweep(home)
        raise
    return lab


def spawn(arguments: list[str], log: Path) -> int:
    """Start a process of the lab that outlives this one, its output in `log`; return its id."""
    # Not subprocess: its objects warn when they are dropped while the process runs, and this one shall.
    return os.posix_spawn(
        arguments[0],
        arguments,
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )


def _wait_answer(pid: int, name: str, home: Path) -> state.Lab:
    (home / "pid").write_text(str(pid))
    deadline = time.monotonic() + START_DEADLINE_S
    while time.monotonic() < deadline:
        lab = state.find(name)
        if lab is not None and lab.pid == pid:
            return lab
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            raise _not_started(name, home, os.waitstatus_to_exitcode(status))
        time.sleep(0.02)
    raise NotPossible(
        f"the lab vCenter did not answer within {START_DEADLINE_S:.0f} s",
        code="lab.start-failed",
        target=name,
        details=_log_tail(home),
    )


def _not_started(name: str, home: Path, status: int) -> VsmlError:
    lines = _log_tail(home)
    if status == BAD_TOPOLOGY:
        error = ConfigError("the lab vCenter refuses its topology or options", code="lab.topology-invalid", target=name)
        error.details = lines
        return error
    return NotPossible(
        f"the lab vCenter ended at once with status {status}",
        code="lab.start-failed",
        target=name,
        hint=OTHER_PORT if any("cannot listen on" in each for each in lines) else "",
        details=lines,
    )


def _log_tail(home: Path) -> tuple[str, ...]:
    with suppress(OSError):
        return tuple((home / "log").read_text(errors="replace").splitlines()[-LOG_LINES:])
    return ()


def _sweep(home: Path) -> None:
    """End whatever still runs for this folder, then remove the folder."""
    for pid in _pids(home):
        end_process(pid, home)
    hub.end(home / power_hook.GUESTS)
    shutil.rmtree(home, ignore_errors=True)


def _pids(home: Path) -> set[int]:
    found = set()
    with suppress(OSError, ValueError):
        found.add(int((home / "pid").read_text()))
    if (lab := state.find(home.name)) is not None:
        found.add(lab.pid)
    return found


def end_process(pid: int, home: Path) -> None:
    """End the process that serves this folder, by force after ten seconds."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        if not state.runs(pid, home):
            break
        with suppress(ProcessLookupError):
            os.kill(pid, sign)
        deadline = time.monotonic() + STOP_DEADLINE_S
        while state.runs(pid, home) and time.monotonic() < deadline:
            time.sleep(0.02)
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
