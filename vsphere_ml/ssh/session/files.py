"""Files in a guest: replaced whole or not at all, and checked by their size before they count."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, BinaryIO

import paramiko

from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.hints import command_line
from vsphere_ml.ssh.session import errors

if TYPE_CHECKING:
    from pathlib import Path

    import fabric

    from vsphere_ml.ssh.session.target import SshTarget

WRITE_S = 300.0
COPY_S = 3600.0
ROOT = "root:root"
TIMED_OUT = 124  # timeout(1)'s status

_PLACE = """\
set -e
path={path}
dir=$(dirname -- "$path")
umask 022
mkdir -p -- "$dir"
umask 077
[ ! -d "$path" ] || {{ echo "it is a folder" >&2; exit 1; }}
"""
_CHECK = """\
have=$(wc -c <"$new")
[ "$have" -eq {size} ] || {{ echo "$have of {size} bytes arrived" >&2; exit 1; }}
chown -- {owner} "$new"
chmod {mode:04o} "$new"
mv -f -- "$new" "$path"
"""
_GUARD = """\
trap 'rm -f -- "$new"' EXIT
trap 'exit 1' HUP INT TERM PIPE
"""
_NEW = 'new=$(mktemp "$dir/.vsml.XXXXXXXX")\n' + _GUARD


def replace(path: str, size: int, mode: int, owner: str) -> str:
    """Return the script that makes a file of its standard input."""
    return _PLACE.format(path=shlex.quote(path)) + _NEW + 'cat >"$new"\n' + _check(size, mode, owner)


def stage(path: str, user: str) -> str:
    """Return the script that makes an empty file for the user to fill, and prints its name."""
    if user == "root":  # beside its place, so that it need not be copied again
        return _PLACE.format(path=shlex.quote(path)) + 'mktemp "$dir/.vsml.XXXXXXXX"\n'
    return f'set -e\nnew=$(mktemp /var/tmp/vsml.XXXXXXXX)\nchown -- {shlex.quote(user)} "$new"\necho "$new"\n'


def settle(staged: str, path: str, size: int, mode: int) -> str:
    """Return the script that puts a staged file in its place."""
    place = _PLACE.format(path=shlex.quote(path))
    staged_file = shlex.quote(staged)
    if staged.rpartition("/")[0] == path.rpartition("/")[0]:
        return f"{place}new={staged_file}\n{_GUARD}{_check(size, mode, ROOT)}"
    fill = f'trap \'rm -f -- "$new" {staged_file}\' EXIT\ncat -- {staged_file} >"$new"\n'
    return place + _NEW + fill + _check(size, mode, ROOT)


def send(connection: fabric.Connection, target: SshTarget, local: Path, staged: str) -> None:
    """Fill the staged file by SFTP."""
    try:
        sftp = connection.sftp()
        sftp.get_channel().settimeout(WRITE_S)
        sftp.put(str(local), staged, confirm=True)
    except TimeoutError as error:
        raise errors.timeout_error(target, f"copy {local}", WRITE_S) from error
    except (paramiko.SSHException, OSError, EOFError) as error:
        if not connection.is_connected:
            raise errors.cut(target, f"copy {local}") from error
        raise errors.not_written(target, staged, (f"copying {local}: {error}",)) from error


def copy(path: str, user: str) -> str:
    """Return the script that prints the name of a file that the user may read: of this one, or of a copy for it."""
    begin = f"set -e\npath={shlex.quote(path)}\n"
    if user == "root":
        return f'{begin}[ -f "$path" ] || {{ cat -- "$path"; exit 1; }}\nprintf %s "$path"\n'
    return (
        f"{begin}new=$(mktemp /var/tmp/vsml.XXXXXXXX)\ntrap 'rm -f -- \"$new\"' EXIT\n"
        f'cat -- "$path" >"$new"\nchown -- {shlex.quote(user)} "$new"\ntrap - EXIT\nprintf %s "$new"\n'
    )


def receive(connection: fabric.Connection, target: SshTarget, path: str, local: Path) -> None:
    """Fill a local file by SFTP, at once or not at all."""
    part = local.with_name(f".{local.name}.part")
    try:
        with _new_file(part) as file:
            try:
                sftp = connection.sftp()
                sftp.get_channel().settimeout(WRITE_S)
                sftp.getfo(path, file)
            except TimeoutError as error:
                raise errors.timeout_error(target, f"copy {path}", WRITE_S) from error
            except (paramiko.SSHException, OSError, EOFError) as error:
                if not connection.is_connected:
                    raise errors.cut(target, f"copy {path}") from error
                raise errors.not_read(target, path, (f"copying it to {local}: {error}",)) from error
        part.replace(local)
    finally:
        part.unlink(missing_ok=True)


def _new_file(path: Path) -> BinaryIO:
    try:
        return path.open("wb")
    except OSError as error:
        raise ConfigError(
            f"cannot write {path.parent}: {error.strerror}",
            code="file.unwritable",
            target=str(path.parent),
            hint=command_line("ls", "-ld", path.parent),
        ) from error


def size_of(local: Path) -> int:
    """Return the size of a local file that can be read."""
    try:
        with local.open("rb") as file:
            return file.seek(0, 2)
    except OSError as error:
        raise ConfigError(
            f"cannot read {local}: {error.strerror}",
            code="file.unreadable",
            target=str(local),
            hint=command_line("ls", "-l", local),
        ) from error


def _check(size: int, mode: int, owner: str) -> str:
    return _CHECK.format(size=size, mode=mode, owner=shlex.quote(owner))
