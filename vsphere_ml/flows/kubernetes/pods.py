"""Pods waited for and taken away, by an API server that may be silent for a while."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from vsphere_ml.core.errors import NotPossible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from vsphere_ml.core.ports.kubernetes import KubernetesApi, ObjectRef
    from vsphere_ml.core.ports.vcenter import Clock

T = TypeVar("T")
PAUSE_S = 1.0  # between two looks
SILENCE_S = 120.0  # of an API server that answered before
GONE_S = 90.0  # for pods to be gone: their grace period is 30 s
UNREACHABLE = "kubernetes.unreachable"


def poll_until(clock: Clock, read: Callable[[float], T | None], limit_s: float) -> T | None:
    """Return what a look finds, given the seconds since the first; None once the limit has passed.

    What runs goes on while the API server restarts; NotPossible `kubernetes.unreachable` when it stays silent.
    """
    began = seen = clock.now()
    while True:
        try:
            if (found := read(clock.now() - began)) is not None:
                return found
            seen = clock.now()
        except NotPossible as error:
            if error.code != UNREACHABLE or clock.now() - seen > SILENCE_S:
                raise
        if clock.now() - began > limit_s:
            return None
        clock.sleep(PAUSE_S)


def remove_all(api: KubernetesApi, clock: Clock, refs: Iterable[ObjectRef], labels: Mapping[str, str]) -> str:
    """Delete objects, and wait until no pod with these labels is left beside them; return why some are, if so."""
    wanted, deadline = tuple(refs), clock.now() + GONE_S
    while True:
        try:
            why = _delete(api, wanted, labels)
        except NotPossible as error:
            why = error.message
        if not why or clock.now() > deadline:
            return why
        clock.sleep(PAUSE_S)


def _delete(api: KubernetesApi, refs: tuple[ObjectRef, ...], labels: Mapping[str, str]) -> str:
    for ref in refs:
        api.delete(ref)
    left = [str(each["metadata"]["name"]) for each in api.list("Pod", refs[0].namespace, labels)]
    return f"{', '.join(left)} still there {GONE_S:g} s after they were deleted" if left else ""
