"""A parameter server and its workers in one process, over loopback; arrays of the standard library for numpy's."""

from __future__ import annotations

import threading
from array import array
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from vsphere_ml.bench.workloads.parameter_server import ParameterServer, ServedPart, Turns, split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SIZE = 5000
LONGEST_S = 20


class Floats(array):  # type: ignore[type-arg]
    """As much of numpy's array as a server uses."""

    def __mul__(self, factor: Any) -> Any:
        return Floats("f", [each * factor for each in self])

    def __iadd__(self, other: Any) -> Any:  # type: ignore[misc]
        self[:] = [one + two for one, two in zip(self, other, strict=True)]
        return self

    def __isub__(self, other: Any) -> Any:
        self[:] = [one - two for one, two in zip(self, other, strict=True)]
        return self

    def __setitem__(self, at: Any, value: Any) -> None:
        values = [value] * len(self) if isinstance(value, int | float) else value
        super().__setitem__(at, array("f", values))


def floats(value: float) -> Any:
    return Floats("f", [value] * SIZE)


@contextmanager
def served(workers: int, *, in_step: bool) -> Iterator[list[ServedPart]]:
    """Run a server whose weights are 10, and connect so many workers."""
    server = ParameterServer(floats(10), workers, in_step=in_step)
    parts = [ServedPart(("127.0.0.1", server.port)) for _ in range(workers)]
    yield parts
    for each in parts:
        each.connection.close()


def side_by_side(*calls: Callable[[], Any]) -> list[Any]:
    with ThreadPoolExecutor(len(calls)) as pool:
        return [each.result(LONGEST_S) for each in [pool.submit(call) for call in calls]]


def pulled(part: ServedPart) -> float:
    """Return the value that all weights of the server have."""
    weights = floats(0)
    part.pull(weights)
    (value,) = set(weights)
    return float(value)


def test_in_step_all_pull_the_same_weights_with_the_changes_of_all_in_them() -> None:
    with served(3, in_step=True) as parts:
        for step in (1, 2):
            assert side_by_side(*(lambda part=part: part.push(floats(1)) for part in parts)) == [0, 0, 0]
            assert side_by_side(*(lambda part=part: pulled(part) for part in parts)) == [10 - 3 * step] * 3


def test_in_step_nobody_is_answered_before_the_last_has_pushed() -> None:
    with served(2, in_step=True) as (first, second), ThreadPoolExecutor(2) as pool:
        first.push(floats(1))
        early = pool.submit(pulled, first)
        assert not wait([early], 0.3).done
        second.push(floats(2))
        assert not wait([early], 0.3).done
        late = pool.submit(pulled, second)
        assert (early.result(LONGEST_S), late.result(LONGEST_S)) == (7, 7)


def test_out_of_step_each_is_answered_at_once_and_learns_how_far_behind_it_was() -> None:
    with served(2, in_step=False) as (first, second):
        assert pulled(first) == pulled(second) == 10
        assert first.push(floats(1)) == 0
        assert pulled(first) == 9
        assert first.push(floats(1)) == 0
        assert second.push(floats(1)) == 2
        assert pulled(second) == 7
        assert second.push(floats(1)) == 0


def test_a_worker_that_goes_does_not_leave_the_others_waiting() -> None:
    with served(2, in_step=True) as (first, second):
        first.push(floats(1))
        second.connection.sendall(b"P")
        second.connection.close()
        with pytest.raises(ConnectionError):
            pulled(first)


def test_one_is_let_in_at_a_time_in_the_order_of_arrival() -> None:
    turns, seen = Turns(), []
    inside = threading.Event()

    def enter(number: int) -> None:
        with turns:
            assert not inside.is_set()
            inside.set()
            seen.append(number)
            inside.clear()

    with turns:
        threads = []
        for number in range(5):
            threads.append(threading.Thread(target=enter, args=(number,)))
            threads[-1].start()
            while turns.given < number + 2:
                pass
    for each in threads:
        each.join(LONGEST_S)
    assert seen == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("length", "parts"), [(10, 1), (10, 3), (7, 7)])
def test_parts_cover_all_and_are_of_equal_length_but_for_one(length: int, parts: int) -> None:
    made = split(length, parts)
    assert [at for each in made for at in range(length)[each]] == list(range(length))
    lengths = {len(range(length)[each]) for each in made}
    assert max(lengths) - min(lengths) <= 1
