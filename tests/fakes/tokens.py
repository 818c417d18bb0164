"""Where the words of a shell text end."""

from __future__ import annotations

_OPERATORS = ("&&", "||", ";;", "2>&1", "1>&2", ">&2", "2>>", "2>", ">>", "1>", ">", "<", "|", ";", "&", "(", ")", "\n")


def tokens(text: str) -> list[tuple[str, str]]:
    """Return (kind, text): kind is `op` or `word`; a word keeps its quotes."""
    found, at = [], 0
    while at < len(text):
        if text[at] in " \t":
            at += 1
            continue
        if text.startswith("\\\n", at):
            at += 2
            continue
        operator = next((each for each in _OPERATORS if text.startswith(each, at)), None)
        if operator:
            found.append(("op", operator))
            at += len(operator)
            continue
        end = _word_end(text, at)
        found.append(("word", text[at:end]))
        at = end
    return found


def _word_end(text: str, at: int) -> int:
    while at < len(text) and text[at] not in " \t\n;&|<>()":
        at = after(text, at)
    return at


def after(text: str, at: int) -> int:
    """Return where the next piece of a word ends: a character, a quoted part, a substitution."""
    if text[at] == "\\":
        return at + 2
    if text[at] == "'":
        return _found(text, "'", at + 1) + 1
    if text[at] == '"':
        at += 1
        while _here(text, at) != '"':
            at = after(text, at) if text[at] in "\\$" else at + 1
        return at + 1
    if text.startswith("$((", at):
        return _found(text, "))", at) + 2
    if text.startswith("$(", at):
        return _closing(text, at + 2)
    return at + 1


def _closing(text: str, at: int) -> int:
    while _here(text, at) != ")":
        at = _closing(text, at + 1) if text[at] == "(" else after(text, at)
    return at + 1


def _found(text: str, what: str, at: int) -> int:
    end = text.find(what, at)
    if end < 0:
        raise SyntaxError("Unterminated quoted string")
    return end


def _here(text: str, at: int) -> str:
    if at >= len(text):
        raise SyntaxError("Unterminated quoted string")
    return text[at]
