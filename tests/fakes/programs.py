"""The programs of a guest in memory, with the options that steps use; any other option has no meaning."""

from __future__ import annotations

import hashlib
import operator
import posixpath
import re
import subprocess
from typing import TYPE_CHECKING, TypeAlias

from tests.fakes.sh import NoMeaning, Streams

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fakes.guest import FakeGuest

Program: TypeAlias = "Callable[[FakeGuest, list[str], Streams], int]"
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
    for path in _operands(words, "cat") or ["-"]:
        text = streams.stdin if path == "-" else guest.read_file(path)
        if text is None:
            streams.err += f"cat: {path}: {_absent(guest, path)}\n"
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


def bracket(guest: FakeGuest, words: list[str], streams: Streams) -> int:
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
        if path not in guest.files:
            streams.err += f"stat: cannot statx '{path}': {_absent(guest, path)}\n"
            return 1
        file = guest.files[path]
        user, _, group = file.owner.partition(":")
        known = {
            "%a": f"{file.mode:o}",
            "%U": user,
            "%G": group or user,
            "%s": str(len(file.text.encode())),
            "%n": path,
        }
        streams.out += _filled(shape, "(%.)", known) + "\n"
    return 0


def sha256sum(guest: FakeGuest, words: list[str], streams: Streams) -> int:
    for path in _operands(words, "sha256sum") or ["-"]:
        text = streams.stdin if path == "-" else guest.read_file(path)
        if text is None:
            streams.err += f"sha256sum: {path}: {_absent(guest, path)}\n"
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
    for path in _operands([word for word in words if word not in ("-f", "-r", "-rf")], "rm"):
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
    for path in _operands([word for word in words if word != "-p"], "mkdir"):
        if path in guest.files:
            streams.err += f"mkdir: cannot create directory '{path}': File exists\n"
            return 1
        guest.folders.add(posixpath.normpath(path))
    return 0


def mv(guest: FakeGuest, words: list[str], streams: Streams) -> int:
    old, new = _operands([word for word in words if word != "-f"], "mv")
    if old not in guest.files:
        streams.err += f"mv: cannot stat '{old}': No such file or directory\n"
        return 1
    guest.files[new] = guest.files.pop(old)
    return 0


def identity(guest: FakeGuest, words: list[str], streams: Streams) -> int:
    match words:
        case ["-u"]:
            streams.out += "0\n"
        case ["-u", name] if name in guest.users:
            streams.out += f"{guest.users[name]}\n"
        case ["-u", name]:
            streams.err += f"id: '{name}': no such user\n"
            return 1
        case _:
            raise NoMeaning(f"id {words}")
    return 0


def dpkg_query(guest: FakeGuest, words: list[str], streams: Streams) -> int:
    shape, status = "", 0
    for word in words:
        if word.startswith("-f="):
            shape = word.removeprefix("-f=").replace("\\n", "\n")
        elif word not in ("-W", "-f"):
            if word.startswith("${"):
                shape = word.replace("\\n", "\n")
                continue
            version = guest.packages.get(word)
            if version is None:
                streams.err += f"dpkg-query: no packages found matching {word}\n"
                status = 1
                continue
            known = {"db:Status-Abbrev": "ii ", "Status": "install ok installed", "Package": word, "Version": version}
            streams.out += _filled(shape, r"\$\{([\w:-]+)\}", known)
    return status


def apt_get(guest: FakeGuest, words: list[str], streams: Streams) -> int:
    rest, wanted = [], iter(words)
    for word in wanted:
        if word in ("-o", "-t"):
            next(wanted)
        elif not word.startswith("-"):
            rest.append(word)
    if rest[:1] == ["update"]:
        return 0
    if rest[:1] != ["install"]:
        raise NoMeaning(f"apt-get {words}")
    for each in rest[1:]:
        name, _, version = each.partition("=")
        if name not in guest.available or (version and guest.available[name] != version):
            streams.err += f"E: Unable to locate package {name}\n"
            return 100
    if guest.disk_full:
        streams.err += "E: You don't have enough free space in /var/cache/apt/archives/.\n"
        return 100
    guest.packages |= {each.partition("=")[0]: guest.available[each.partition("=")[0]] for each in rest[1:]}
    return 0


def modprobe(guest: FakeGuest, words: list[str], streams: Streams) -> int:
    name = _operands(words, "modprobe")[0].replace("-", "_")
    if name not in guest.loadable:
        streams.err += f"modprobe: FATAL: Module {words[0]} not found in directory /lib/modules/x\n"
        return 1
    guest.modules.add(name)
    return 0


def lsmod(guest: FakeGuest, words: list[str], streams: Streams) -> int:
    streams.out += "Module                  Size  Used by\n" + "".join(
        f"{each} 16384 0\n" for each in sorted(guest.modules)
    )
    return 0


def systemctl(guest: FakeGuest, words: list[str], streams: Streams) -> int:
    from tests.fakes.guest import Service  # noqa: PLC0415 - they know each other

    now = "--now" in words
    match [word for word in words if word not in ("--now", "-q", "--quiet")]:
        case ["daemon-reload"] | ["daemon-reexec"]:
            return 0
        case ["is-active", name]:
            active = name in guest.services and guest.services[name].active
            streams.out += "active\n" if active else "inactive\n"
            return 0 if active else 3
        case ["is-enabled", name]:
            enabled = name in guest.services and guest.services[name].enabled
            streams.out += "enabled\n" if enabled else "disabled\n"
            return int(not enabled)
        case [("enable" | "disable" | "start" | "stop" | "restart" | "reload") as verb, name]:
            if name not in guest.services:
                streams.err += f"Failed to {verb} {name}.service: Unit {name}.service not found.\n"
                return 5
            was = guest.services[name]
            active = (was.active or now) if verb == "enable" else was.active and not now
            guest.services[name] = {
                "enable": Service(active, enabled=True),
                "disable": Service(active, enabled=False),
                "stop": Service(active=False, enabled=was.enabled),
            }.get(verb, Service(active=True, enabled=was.enabled))
            return 0
    raise NoMeaning(f"systemctl {words}")


def sysctl(guest: FakeGuest, words: list[str], streams: Streams) -> int:
    match [word for word in words if word != "-q"]:
        case ["-n", name] if name in guest.sysctls:
            streams.out += f"{guest.sysctls[name]}\n"
        case ["-n", name]:
            streams.err += f"sysctl: cannot stat /proc/sys/{name.replace('.', '/')}: No such file or directory\n"
            return 255
        case ["-w", pair]:
            name, _, value = pair.partition("=")
            guest.sysctls[name] = value
        case ["-p", path] if path in guest.files:
            pairs = (line.partition("=") for line in guest.files[path].text.splitlines() if "=" in line)
            guest.sysctls |= {name.strip(): value.strip() for name, _, value in pairs}
        case _:
            raise NoMeaning(f"sysctl {words}")
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


def _filled(shape: str, sign: str, known: dict[str, str]) -> str:
    """Return a format with its signs replaced; a sign that is not known is the test's mistake."""
    return re.sub(sign, lambda match: known[match[1]], shape)


def _operands(words: list[str], program: str) -> list[str]:
    """Return the words after the options; there may be none of those."""
    if words[:1] == ["--"]:
        return words[1:]
    if any(word.startswith("-") and word != "-" for word in words):
        raise NoMeaning(f"{program} {words}")
    return words


def _absent(guest: FakeGuest, path: str) -> str:
    return "Is a directory" if guest.is_folder(path) else "No such file or directory"


KNOWN: dict[str, Program] = {
    ":": constant(),
    "true": constant(),
    "false": constant(status=1),
    "[": bracket,
    "apt-get": apt_get,
    "awk": awk,
    "cat": cat,
    "command": command,
    "dpkg-query": dpkg_query,
    "echo": echo,
    "grep": grep,
    "head": head,
    "id": identity,
    "lsmod": lsmod,
    "mkdir": mkdir,
    "modprobe": modprobe,
    "mv": mv,
    "printf": printf,
    "rm": rm,
    "sha256sum": sha256sum,
    "sleep": constant(),
    "stat": stat,
    "sysctl": sysctl,
    "systemctl": systemctl,
    "test": test,
    "wc": wc,
}
