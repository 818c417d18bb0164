"""The same work on many things at once, in threads that an interrupt does not wait for."""

from __future__ import annotations

import queue
from concurrent.futures import Future
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

S = TypeVar("S")
T = TypeVar("T")


def run_at_once(things: Sequence[S], work: Callable[[S], T], parallel: int) -> list[T]:
    """Return what the work came to, in the order of the things; raises what the work raises.

    A ThreadPoolExecutor would be waited for at the end of the process, and with it a guest that does not answer.
    """
    todo: queue.SimpleQueue[tuple[S, Future[T]]] = queue.SimpleQueue()
    futures: list[Future[T]] = [Future() for _ in things]
    for each in zip(things, futures, strict=True):
        todo.put(each)

    def serve() -> None:
        with suppress(queue.Empty):
            while True:
                thing, future = todo.get_nowait()
                if future.set_running_or_notify_cancel():
                    _settle(future, lambda thing=thing: work(thing))  # type: ignore[misc]

    for _ in range(max(1, min(parallel, len(things)))):
        Thread(target=serve, daemon=True).start()
    try:
        return [future.result() for future in futures]
    finally:
        for future in futures:
            future.cancel()


def _settle(future: Future[T], work: Callable[[], T]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:  # noqa: BLE001 - raised again where the result is wanted
        future.set_exception(error)
