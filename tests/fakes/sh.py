"""As much of a POSIX shell as steps speak: lists, pipes, quotes, redirections, variables, and command substitution.

What it does not know it refuses with NoMeaning, so that no test passes by chance. The contract tests ask a real shell
the same questions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from tests.fakes.tokens import after, tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

_REDIRECTIONS = {"2>&1", "1>&2", ">&2", "2>>", "2>", ">>", "1>", ">", "<"}
_LOOPS = {"while", "until"}
_RESERVED = {"if", "then", "for", "case", "function", "do", "done"}
_SUM = re.compile(r"(\w+) \+ (\d+)")
_TURNS = 1000  # of a loop; a fake that waits for what never comes is a test's mistake
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_NAME = re.compile(r"\$(?:\{(\w+)\}|(\w+|[?$#@*!]))")


class NoMeaning(AssertionError):  # noqa: N818 - a mistake of the test or of the fake
    """The fake has no meaning for a command."""


@dataclass(slots=True)
class Streams:
    stdin: str = ""
    out: str = ""
    err: str = ""


class World(Protocol):
    """What a command acts on."""

    def execute(self, words: Sequence[str], streams: Streams) -> int: ...
    def read_file(self, path: str) -> str | None: ...
    def write_file(self, path: str, text: str, *, append: bool) -> None: ...


class Exit(Exception):  # noqa: N818 - `exit N`
    def __init__(self, status: int) -> None:
        self.status = status


class Break(Exception):  # noqa: N818 - `break`
    pass


@dataclass(slots=True)
class Shell:
    """One shell process: its variables and the status of its last command."""

    world: World
    variables: dict[str, str] = field(default_factory=dict)
    status: int = 0

    def run(self, text: str, streams: Streams) -> int:
        """Return the status of a whole text."""
        try:
            parser = Parser(self, tokens(text), text)
            return parser.list_(streams, go=True, closing=None)
        except Exit as ended:
            return ended.status


@dataclass(slots=True)
class Parser:
    """Reads and runs at once; `go` is false for what `&&` and `||` leave out."""

    shell: Shell
    tokens: list[tuple[str, str]]
    text: str
    at: int = 0

    def list_(self, streams: Streams, *, go: bool, closing: tuple[str, str] | None) -> int:
        while self.at < len(self.tokens) and self._next != closing:
            if self._next in (("op", ";"), ("op", "\n")):
                self.at += 1
                continue
            self._and_or(streams, go=go)
        if closing is not None:
            if self.at >= len(self.tokens):
                raise SyntaxError("end of file unexpected")
            self.at += 1
        return self.shell.status

    def _and_or(self, streams: Streams, *, go: bool) -> None:
        self._pipeline(streams, go=go)
        while self._next in (("op", "&&"), ("op", "||")):
            wants_success = self._take()[1] == "&&"
            while self._next == ("op", "\n"):
                self.at += 1
            self._pipeline(streams, go=go and (self.shell.status == 0) == wants_success)

    def _pipeline(self, streams: Streams, *, go: bool) -> None:
        negated = self._next == ("word", "!")
        self.at += negated
        here = Streams(stdin=streams.stdin)
        self._command(here, go=go)
        while self._next == ("op", "|"):
            self.at += 1
            here.stdin, here.out = here.out, ""
            self._command(here, go=go)
        streams.out += here.out
        streams.err += here.err
        if go and negated:
            self.shell.status = int(self.shell.status == 0)

    def _command(self, streams: Streams, *, go: bool) -> None:
        inner = Streams(stdin=streams.stdin)
        if self._next in (("word", "{"), ("op", "(")):
            self._compound(inner, go=go)
            words: list[str] = []
        elif self._next[0] == "word" and self._next[1] in _LOOPS:
            self._loop(inner, go=go)
            words = []
        else:
            words = self._words(inner, go=go)
        redirections = self._redirections(inner, go=go)
        if go and words:
            self.shell.status = self._simple(words, inner)
        if go:
            self._deliver(inner, redirections, streams)

    def _compound(self, streams: Streams, *, go: bool) -> None:
        braces = self._take() == ("word", "{")
        saved = dict(self.shell.variables)
        try:
            self.list_(streams, go=go, closing=("word", "}") if braces else ("op", ")"))
        except Exit as ended:
            if braces:
                raise
            raise NoMeaning(f"exit within ( ): {self.text}") from ended
        if not braces:
            self.shell.variables = saved

    def _loop(self, streams: Streams, *, go: bool) -> None:
        wanted = self._take()[1] == "while"
        start = self.at
        for _ in range(_TURNS):
            self.at = start
            self.list_(streams, go=go, closing=("word", "do"))
            body, turns = self.at, go and (self.shell.status == 0) == wanted
            try:
                self.list_(streams, go=turns, closing=("word", "done"))
            except Break:
                self.at, turns = body, False
                self.list_(streams, go=False, closing=("word", "done"))
            if not turns:
                self.shell.status = 0
                return
        raise NoMeaning(f"a loop without an end: {self.text}")

    def _words(self, streams: Streams, *, go: bool) -> list[str]:
        """Take the words of a command; redirections that stand between them stay for later."""
        words: list[str] = []
        while self.at < len(self.tokens) and self._next[0] == "word" and self._next[1] != "}":
            raw = self._take()[1]
            if not words and raw in _RESERVED:
                raise NoMeaning(f"`{raw}` in: {self.text}")
            words += self._expand(raw, streams) if go else [raw]
        if not words and (self.at >= len(self.tokens) or self._next[1] not in _REDIRECTIONS):
            raise SyntaxError(f'"{self._next[1] if self.at < len(self.tokens) else "end of file"}" unexpected')
        return words

    def _redirections(self, streams: Streams, *, go: bool) -> list[tuple[str, str]]:
        found = []
        while self.at < len(self.tokens) and self._next[1] in _REDIRECTIONS and self._next[0] == "op":
            operator = self._take()[1]
            where = "" if operator.endswith(("&1", "&2")) else "".join(self._expand(self._take()[1], streams))
            if operator == "<" and go:
                text = self.shell.world.read_file(where)
                if text is None:
                    found.append(("missing", where))
                streams.stdin = text or ""
            else:
                found.append((operator, where))
            if self.at < len(self.tokens) and self._next[0] == "word" and self._next[1] != "}":
                raise NoMeaning(f"a word after a redirection: {self.text}")
        return found

    def _simple(self, words: list[str], streams: Streams) -> int:
        assigned = {}
        while words and (match := _ASSIGNMENT.fullmatch(words[0])):
            assigned[match[1]] = match[2]
            words = words[1:]
        if not words or words[0] == "export":
            pairs = (word.partition("=") for word in words[1:])
            self.shell.variables |= assigned | {name: value for name, _, value in pairs}
            return 0
        if words[0] == "exit":
            raise Exit(int(words[1]) if len(words) > 1 else self.shell.status)
        if words == ["break"]:
            raise Break
        if words[0] == "set":
            raise NoMeaning(f"set: {self.text}")
        if words[:2] == ["sh", "-c"] or words[0] == "eval":  # which is written within ( ) alone
            return Shell(self.shell.world, dict(self.shell.variables)).run(words[-1], streams)
        return self.shell.world.execute(words, streams)

    def _deliver(self, inner: Streams, redirections: list[tuple[str, str]], outer: Streams) -> None:
        """Send both outputs where the redirections say, read from left to right."""
        out, err = "out", "err"
        for operator, where in redirections:
            if operator == "missing":
                self.shell.status = 2
                outer.err += f"sh: 1: cannot open {where}: No such file\n"
                return
            out, err = {
                "2>&1": (out, out),
                "1>&2": (err, err),
                ">&2": (err, err),
            }.get(
                operator,
                (out, f"{operator[1:]} {where}") if operator[0] == "2" else (f"{operator.lstrip('1')} {where}", err),
            )
        for text, place in ((inner.out, out), (inner.err, err)):
            if place in ("out", "err"):
                setattr(outer, place, getattr(outer, place) + text)
            else:
                operator, _, where = place.partition(" ")
                self.shell.world.write_file(where, text, append=operator == ">>")

    def _expand(self, raw: str, streams: Streams) -> list[str]:
        """Return the words that a word becomes: none or several when it is an unquoted variable."""
        if raw[0] not in "'\"" and re.fullmatch(r"[^'\"\\]*\$[^'\"\\]*", raw) and not _ASSIGNMENT.fullmatch(raw):
            return self._value(raw, streams).split()
        return [self._value(raw, streams)]

    def _value(self, raw: str, streams: Streams, *, quoted: bool = False) -> str:
        parts, at = [], 0
        while at < len(raw):
            end = at + 1 if quoted and raw[at] == "'" else after(raw, at)
            piece = raw[at:end]
            if piece[0] == "'" and not quoted:
                parts.append(piece[1:-1])
            elif piece[0] == '"' and not quoted:
                parts.append(self._value(piece[1:-1], streams, quoted=True))
            elif piece[0] == "\\":
                parts.append(piece[1:] if not quoted or piece[1:] in '"\\$`' else piece)
            elif piece.startswith("$(("):
                parts.append(self._sum(piece[3:-2].strip()))
            elif piece.startswith("$("):
                parts.append(self._substitute(piece[2:-1], streams))
            elif piece == "$" and (match := _NAME.match(raw, at)):
                parts.append(self._variable(match[1] or match[2]))
                end = match.end()
            elif piece == "`" or (piece in "*?[" and not quoted and len(raw) > 1 and "/" in raw):
                raise NoMeaning(f"`{raw}` in: {self.text}")
            else:
                parts.append(piece)
            at = end
        return "".join(parts)

    def _sum(self, text: str) -> str:
        match = _SUM.fullmatch(text)
        if match is None:
            raise NoMeaning(f"$(({text})) in: {self.text}")
        return str(int(self.shell.variables.get(match[1], match[1])) + int(match[2]))

    def _substitute(self, text: str, streams: Streams) -> str:
        inner = Streams()
        self.shell.status = Shell(self.shell.world, dict(self.shell.variables)).run(text, inner)
        streams.err += inner.err
        return inner.out.rstrip("\n")

    def _variable(self, name: str) -> str:
        if name == "?":
            return str(self.shell.status)
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise NoMeaning(f"${name} in: {self.text}")
        return self.shell.variables.get(name, "")

    @property
    def _next(self) -> tuple[str, str]:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("end", "")

    def _take(self) -> tuple[str, str]:
        token = self._next
        self.at += 1
        return token
