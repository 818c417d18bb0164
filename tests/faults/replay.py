"""Answers of a lab, recorded by their requests and given again without one: a run of any read in milliseconds."""

from __future__ import annotations

import io
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vsphere_ml.vsphere.connection.tls import PinnedConnection

if TYPE_CHECKING:
    from collections.abc import Callable

_METHOD = re.compile(rb"<(?:\w+:)?Body[^>]*>\s*<(?:\w+:)?(\w+)")


class GivenAgain(io.BytesIO):
    """An HTTP answer as http.client gives it."""

    length = 0

    def __init__(self, status: int, cookie: str | None, body: bytes) -> None:
        super().__init__(body)
        self.status, self.reason, self._cookie = status, "OK", cookie

    def getheader(self, name: str) -> str | None:
        return self._cookie if name == "Set-Cookie" else None


@dataclass(slots=True)
class Recording:
    """What was answered to each request, in the order of the answers, and what becomes of it when given again."""

    answers: dict[tuple[str, bytes], list[tuple[int, str | None, bytes]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    rewrite: Callable[[str, bytes], bytes] = lambda _, body: body

    def bodies(self) -> list[tuple[str, bytes]]:
        """Return the method and the body of every answer."""
        return [(name_method(asked), body) for (_, asked), many in self.answers.items() for _, _, body in many]

    def recorder(self) -> type[PinnedConnection]:
        """Return a connection that asks the lab and writes down what it answers."""
        answers = self.answers

        class Recorder(PinnedConnection):
            def request(self, method: str, url: str, body: Any = None, headers: Any = None, **kwargs: Any) -> None:
                self.asked = (url, _bytes(body))
                remaining = {name: value for name, value in (headers or {}).items() if name != "Accept-Encoding"}
                super().request(method, url, body, remaining, **kwargs)

            def getresponse(self) -> Any:
                given = super().getresponse()
                answer = (given.status, given.getheader("Set-Cookie"), given.read())
                answers[self.asked].append(answer)
                return GivenAgain(*answer)

        return Recorder

    def player(self) -> type[PinnedConnection]:
        """Return a connection that asks nobody: the n-th time the n-th answer, at last the last one again."""
        recording, times = self, defaultdict[tuple[str, bytes], int](int)

        class Player(PinnedConnection):
            def request(self, method: str, url: str, body: Any = None, headers: Any = None, **kwargs: Any) -> None:
                self.asked = (url, _bytes(body))

            def getresponse(self) -> Any:
                many = recording.answers.get(self.asked)
                if not many:  # what was rewritten makes another question, which nobody answers
                    return GivenAgain(503, None, b"")
                status, cookie, body = many[min(times[self.asked], len(many) - 1)]
                times[self.asked] += 1
                return GivenAgain(status, cookie, recording.rewrite(name_method(self.asked[1]), body))

        return Player


def name_method(request: bytes) -> str:
    found = _METHOD.search(request)
    return found[1].decode() if found else "-"


def _bytes(body: Any) -> bytes:
    return body.encode() if isinstance(body, str) else body or b""
