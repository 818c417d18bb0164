"""A clock that only moves when somebody sleeps or waits."""

from __future__ import annotations


class FakeClock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
