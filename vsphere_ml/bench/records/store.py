"""A record on disk: a folder with one JSON document a launch, each written whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import sys
from typing import TYPE_CHECKING

from vsphere_ml.bench.model.record import SCHEMA, Run
from vsphere_ml.bench.records.long_runs import average_steps
from vsphere_ml.bench.records.positions import line_of
from vsphere_ml.bench.records.validate import check
from vsphere_ml.core import codec, json_memory
from vsphere_ml.core.bounded_file import read_bytes
from vsphere_ml.core.diagnostics import Diagnostic, mistake
from vsphere_ml.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# Of a document, in bytes: it is in memory twice while it is decoded, and what is not ASCII five times. What long_runs
# leaves of step times fits.
LARGEST = 120 << 20
LARGEST_BEYOND_ASCII = 64 << 20
_HINT = "`vsml bench` writes records; one that was edited must still be valid"


def text(run: Run) -> str:
    """Return the document of a launch: a line a key, a line a list of numbers."""
    document = {"schema": SCHEMA, **codec.encode(run)}
    return _lines(document, "") + "\n"


def write(run: Run, folder: Path) -> Path:
    """Write a launch's document into the record `folder`, made when it is not there, and return its file.

    Launches of one configuration sort in their order; a file is there whole or not at all. Very many steps are written
    as means of some each. Raises ConfigError `record.unwritable`, also for what could not be read again.
    """
    content = text(average_steps(run))
    file = folder / f"{run.started.replace(':', '')}-{run.run_id}.json"
    part = file.with_suffix(".part")
    if len(content) > LARGEST or json_memory.memory(content) > json_memory.MOST:
        raise _unwritable_error(file, OSError(errno.EFBIG, "it would be too large to be read again"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with part.open("w", encoding="utf-8") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(file)
    except OSError as error:
        raise _unwritable_error(file, error) from error
    return file


def check_writable(folder: Path) -> None:
    """Raise ConfigError `record.unwritable` when no launch could be recorded there; nothing is made."""
    there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if not there.is_dir():
        raise _unwritable_error(folder, NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)))
    if not os.access(there, os.W_OK | os.X_OK):
        raise _unwritable_error(folder, PermissionError(errno.EACCES, os.strerror(errno.EACCES)))


def keep_log(folder: Path, run_id: str, log: str) -> Path:
    """Write what a launch printed beside its document, and return the file."""
    file = folder / f"{run_id}.log"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(log, encoding="utf-8")
    except OSError as error:
        raise _unwritable_error(file, error) from error
    return file


def read(*paths: Path) -> tuple[Run, ...]:
    """Return the runs of these records (folders) and documents (files), each once, in the order they were started.

    Raises ConfigError with every bad document's file and line, or when there is no run at all.
    """
    runs: list[Run] = []
    problems: list[Diagnostic] = []
    held = 0
    for file in _files(paths):
        try:
            content = _text(file)
            held += _document_memory(content, str(file), held)
            runs.append(parse(content, str(file)))
        except ConfigError as error:
            problems.extend(error.problems)
    if problems:
        raise _unreadable_error(problems)
    if not runs:
        text = " and ".join(str(each) for each in paths)
        raise ConfigError(f"there is no run in {text}", code="record.empty", target=text, hint="`vsml bench` makes one")
    runs = [run for at, run in enumerate(runs) if run not in runs[:at]]
    return tuple(sorted(runs, key=lambda run: (run.started, run.launch)))


def parse(content: str, name: str) -> Run:
    """Return the run of a document's text; raises ConfigError with file and line."""
    read = _decode_document(content, name)
    if isinstance(read, Run):
        return read
    key = ".".join(str(each) for each in read.path)
    problem = mistake(name, line_of(content, read.path), read.message, key=key)
    raise _unreadable_error([problem]) from read


def _decode_document(content: str, name: str) -> Run | codec.Mismatch:
    """Return the run, or what is wrong, without the traceback that would keep the document in memory."""
    try:
        document = json.loads(content)
    except json.JSONDecodeError as error:
        raise _unreadable_error([mistake(name, error.lineno, f"not JSON: {error.msg}")]) from error
    except RecursionError as error:
        raise _unreadable_error([mistake(name, None, "nested too deep")]) from error
    except ValueError as error:  # a number of more than 4300 digits
        raise _unreadable_error([mistake(name, None, str(error))]) from error
    try:
        run = codec.decode(Run, _body(document))
        check(run)
    except codec.Mismatch as error:
        return error.with_traceback(None)
    return run


def _body(document: object) -> dict[str, object]:
    if not isinstance(document, dict) or "schema" not in document:
        raise codec.Mismatch((), f"this is no document of schema {SCHEMA}")
    if document["schema"] != SCHEMA:
        raise codec.Mismatch(("schema",), f"its schema is {document['schema']!r}, this vsml reads {SCHEMA}")
    return {key: value for key, value in document.items() if key != "schema"}


def _files(paths: Iterable[Path]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            files += sorted(path.glob("*.json"))
        elif path.is_file():
            files.append(path)
        else:
            problem = mistake(str(path), None, "there is no such record")
            raise _unreadable_error([problem])
    return files


def _text(file: Path) -> str:
    try:
        content = read_bytes(file, LARGEST)
        if len(content) > LARGEST_BEYOND_ASCII and not content.isascii():
            raise OSError(errno.EFBIG, f"it is larger than {LARGEST_BEYOND_ASCII >> 20} MiB and not all ASCII")  # noqa: TRY301
        return content.decode("utf-8-sig")  # editors on Windows put a mark before the text
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror or str(error) if isinstance(error, OSError) else "it is not UTF-8 text"
        raise _unreadable_error([mistake(str(file), None, why)]) from error


def _document_memory(content: str, name: str, held: int) -> int:
    """Return the bytes that a document holds in memory; ConfigError when it does not fit with what others hold."""
    needed = json_memory.memory(content)
    if held + needed > json_memory.MOST:
        more = f" in addition to {held >> 20} MiB of the documents before it" if held else ""
        message = f"it takes {needed >> 20} MiB of memory{more}, and {json_memory.MOST >> 20} MiB are allowed"
        raise _unreadable_error([mistake(name, None, message)])
    return needed - sys.getsizeof(content)


def _unwritable_error(file: Path, error: OSError) -> ConfigError:
    return ConfigError(
        f"{file} cannot be written: {error.strerror}",
        code="record.unwritable",
        target=str(file),
        hint="give a folder that can be written to",
    )


def _unreadable_error(problems: list[Diagnostic]) -> ConfigError:
    files = {problem.file for problem in problems}
    what = next(iter(files)) if len(files) == 1 else f"{len(files)} documents"
    return ConfigError(
        f"{what} cannot be read as a benchmark record",
        problems=tuple(problems),
        code="record.unreadable",
        target=what,
        hint=_HINT,
    )


def _lines(value: object, indent: str) -> str:
    inner = indent + "  "
    if isinstance(value, dict) and value:
        members = (f"{inner}{json.dumps(key)}: {_lines(each, inner)}" for key, each in value.items())
        return "{\n" + ",\n".join(members) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(each, dict | list) for each in value):
        return "[\n" + ",\n".join(inner + _lines(each, inner) for each in value) + f"\n{indent}]"
    return json.dumps(value)
