"""The programs of a guest in memory, with the options that steps use; any other option has no meaning."""

from __future__ import annotations

import hashlib
import operator
import posixpath
import re
import subprocess
from typing import TYPE_CHECKING

from tests.fakes import administration
from tests.fakes.program import Program, absent, filled, operands
from tests.fakes.sh import NoMeaning, Streams

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fakes.guest import FakeGuest

_ESCAPES = {"\\n": "\n", "\\t": "\t", "\\\\": "\\"}


def echo(_guest: FakeGuest, words: list[str], streams: Streams) -> int:
    streams.out += " ".join(words) + "\n"
    return 0


def printf(_guest: FakeGuest, words: list[str], streams: Streams) -> int:
    shape = re.sub(r"\\[nt\\]", lambda match: _ESCAPES[match[0]], words[0])
    rest = words[1:]
    if re.sub("%[sd]|%%", "", shape).count("%"):
        raise NoMeaning(f"printf {words}")
    while True:
        streams.out += re.sub("%%|%[sd]", lambda match: "%" if match[0] == "%%" else rest.pop(0) if rest else "", shape)
        if not rest or "%" not in shape:
            return 0


def cat(guest: FakeGuest, words: list[str], streams: Streams) -> int:
    status = 0
    for path in operands(words, "cat") or ["-"]:
        text = streams.stdin if path == "-" else guest.read_file(path)
        if text is None:
            streams.err += f"cat: {path}: {absent(guest, path)}\n"
            status = 1
        streams.out += text or ""
    return status


def test(guest: FakeGuest, words: list[str], _streams: Streams) -> int:
    match words:
        case ["!", *rest]:
            return int(test(guest, rest, _streams) == 0)
        case [option, operand] if option in _TESTS:
            return int(not _TESTS[option](guest, operand))
        case [left, ("=" | "!=") as sign, right]:
            return int((left == right) != (sign == "="))
        case [left, ("-eq" | "-le" | "-ge") as sign, right]:
            return int(not _COMPARISONS[sign](int(left), int(right)))
    raise NoMeaning(f"test {words}")


_COMPARISONS: dict[str, Callable[[int, int], bool]] = {"-eq": operator.eq, "-le": operator.le, "-ge": operator.ge}
_TESTS: dict[str, Callable[[FakeGuest, str], bool]] = {
    "-e": lambda guest, path: guest.has(path),
    "-f": lambda guest, path: guest.read_file(path) is not None,
    "-r": lambda guest, path: guest.read_file(path) is not None,
    "-s": lambda guest, path: bool(guest.read_file(path)),
    "-d": lambda guest, path: guest.is_folder(path),
    "-x": lambda guest, path: path in guest.files and bool(guest.files[path].mode & 0o111),
    "-n": lambda _guest, text: bool(text),
    "-z": lambda _guest, text: not text,
}


def bounds(guest: FakeGuest, words: list[str], streams: Streams) -> int:
    if words[-1:] != ["]"]:
        raise NoMeaning(f"[ {words}")
    return test(guest, words[:-1], streams)


def stat(guest: FakeGuest, words: list[str], streams: Streams) -> int:
    shape, paths = "", []
    rest = [word for word in words if word not in ("-L", "--")]
    while rest:
        word = rest.pop(0)
        if word in ("-c", "--format"):
            shape = rest.pop(0)
        else:
            paths.append(word)
    for path in paths:
        if not guest.has(path):
            streams.err += f"stat: cannot statx '{path}': {absent(guest, path)}\n"
            return 1
        mode, owner, size = guest.about(path)
        user, _, group = owner.partition(":")
        known = {"%a": f"{mode:o}", "%U": user, "%G": group or user, "%s": str(size), "%n": path}
        streams.out += filled(shape, "(%.)", known) + "\n"
    return 0


def sha256sum(guest: FakeGuest, words: list[str], streams: Streams) -> int:
    for path in operands(words, "sha256sum") or ["-"]:
        text = streams.stdin if path == "-" else guest.read_file(path)
        if text is None:
            streams.err += f"sha256sum: {path}: {absent(guest, path)}\n"
            return 1
        streams.out += f"{hashlib.sha256(text.encode()).hexdigest()}  {path}\n"
    return 0


def grep(guest: FakeGuest, words: list[str], streams: Streams) -> int:
    flags, rest, patterns = "", list(words), []
    while rest and rest[0].startswith("-") and rest[0] not in ("-", "--"):
        word = rest.pop(0)
        if word == "-e":
            patterns.append(rest.pop(0))
        else:
            flags += word[1:]
    rest = rest[1:] if rest[:1] == ["--"] else rest
    patterns = patterns or [rest.pop(0)]
    rest = rest[1:] if rest[:1] == ["--"] else rest
    if set(flags) - set("FxqviEwc"):
        raise NoMeaning(f"grep {words}")
    texts = [guest.read_file(path) for path in rest] if rest else [streams.stdin]
    if None in texts:
        streams.err += "" if "s" in flags else f"grep: {rest[0]}: No such file or directory\n"
        return 2
    lines = [line for text in texts for line in (text or "").splitlines()]
    found = [line for line in lines if any(_matches(line, each, flags) for each in patterns) != ("v" in flags)]
    if "c" in flags:
        streams.out += f"{len(found)}\n"
    elif "q" not in flags:
        streams.out += "".join(f"{line}\n" for line in found)
    return int(not found)


def _matches(line: str, pattern: str, flags: str) -> bool:
    if "F" in flags:
        pattern = re.escape(pattern)
    elif "E" not in flags and re.search(r"\\[|(){}+?]", pattern):
        raise NoMeaning(f"a basic regular expression with GNU's signs: {pattern}")
    elif "E" not in flags:
        pattern = re.sub(r"[(){}+?|]", lambda match: "\\" + match[0], pattern)
    pattern = rf"\b(?:{pattern})\b" if "w" in flags else pattern
    search = re.fullmatch if "x" in flags else re.search
    return search(pattern, line, re.IGNORECASE if "i" in flags else 0) is not None


def head(_guest: FakeGuest, words: list[str], streams: Streams) -> int:
    number = {"": 10}.get("".join(words)) or int(re.sub(r"^-n?\s*", "", "".join(words)))
    streams.out += "".join(streams.stdin.splitlines(keepends=True)[:number])
    return 0


def wc(_guest: FakeGuest, words: list[str], streams: Streams) -> int:
    if words not in (["-l"], ["-c"]):
        raise NoMeaning(f"wc {words}")
    streams.out += f"{streams.stdin.count(chr(10)) if words == ['-l'] else len(streams.stdin.encode())}\n"
    return 0


def awk(guest: FakeGuest, words: list[str], streams: Streams) -> int:
    """Filter text by this machine's own awk, which sees no file."""
    *program, last = words
    text = guest.read_file(last) if program and guest.read_file(last) is not None else None
    if text is None and re.fullmatch(r"/[\w./-]+[^/]", last):
        streams.err += f"awk: cannot open {last} (No such file or directory)\n"
        return 2
    done = subprocess.run(
        ["awk", *(words if text is None else program)],
        input=streams.stdin if text is None else text,
        capture_output=True,
        check=False,
        text=True,
    )
    streams.out += done.stdout
    streams.err += done.stderr
    return done.returncode


def rm(guest: FakeGuest, words: list[str], streams: Streams) -> int:
    force = any(word.startswith("-") and "f" in word for word in words)
    for path in operands([word for word in words if word not in ("-f", "-r", "-rf")], "rm"):
        if not force and not guest.has(path):
            streams.err += f"rm: cannot remove '{path}': No such file or directory\n"
            return 1
        gone = (path, path.rstrip("/") + "/")
        guest.files = {
            each: file for each, file in guest.files.items() if each != path and not each.startswith(gone[1])
        }
        guest.folders -= {each for each in guest.folders if each == path or each.startswith(gone[1])}
    return 0


def mkdir(guest: FakeGuest, words: list[str], streams: Streams) -> int:
    for path in operands([word for word in words if word != "-p"], "mkdir"):
        if path in guest.files:
            streams.err += f"mkdir: cannot create directory '{path}': File exists\n"
            return 1
        guest.folders.add(posixpath.normpath(path))
    return 0


def mv(guest: FakeGuest, words: list[str], streams: Streams) -> int:
    old, new = operands([word for word in words if word != "-f"], "mv")
    if old not in guest.files:
        streams.err += f"mv: cannot stat '{old}': No such file or directory\n"
        return 1
    guest.files[new] = guest.files.pop(old)
    return 0


def command(guest: FakeGuest, words: list[str], streams: Streams) -> int:
    match words:
        case ["-v", name]:
            there = name in guest.programs or name in KNOWN
            streams.out += f"/usr/bin/{name}\n" if there else ""
            return 0 if there else 127
    raise NoMeaning(f"command {words}")


def constant(out: str = "", *, err: str = "", status: int = 0) -> Program:
    """Return a program that always says the same: for tests to teach a guest."""

    def program(_guest: FakeGuest, _words: list[str], streams: Streams) -> int:
        streams.out += out
        streams.err += err
        return status

    return program


KNOWN: dict[str, Program] = {
    **administration.KNOWN,
    ":": constant(),
    "true": constant(),
    "false": constant(status=1),
    "[": bounds,
    "awk": awk,
    "cat": cat,
    "command": command,
    "echo": echo,
    "grep": grep,
    "head": head,
    "mkdir": mkdir,
    "mv": mv,
    "printf": printf,
    "rm": rm,
    "sha256sum": sha256sum,
    "sleep": constant(),
    "stat": stat,
    "test": test,
    "wc": wc,
}
