"""Asks, and acts only on the plan that was agreed to: a site that moved on meanwhile is shown again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from vsphere_ml.core.errors import NotPossible

if TYPE_CHECKING:
    from collections.abc import Callable

    from vsphere_ml.core.ports.vcenter import VCenter


class _Confirmable(Protocol):
    """A plan of any kind; false when there is nothing to do."""

    def __bool__(self) -> bool: ...

    @property
    def work(self) -> object:
        """What would be done: two plans with equal work are the same to the person who agreed."""
        ...


P = TypeVar("P", bound=_Confirmable)

_TIMES = 5


def agree(  # noqa: PLR0917
    todo: P,
    replan: Callable[[P], P],
    approve: Callable[[P], bool],
    act: Callable[[P], None],
    vcenter: VCenter,
    cluster: str,
) -> tuple[P, bool]:
    """Return the plan that was decided on, and whether it was carried out.

    `approve` shows what would be done and decides; it may raise to refuse. Nothing is written before a yes, not even
    the lock; nobody is asked while holding it. Under the lock `replan` looks at the site again, and a plan that came
    out different is shown like a first one.
    """
    for _ in range(_TIMES):
        if not todo or not approve(todo):
            return todo, False
        with vcenter.hold(cluster):
            fresh = replan(todo)
            if fresh.work == todo.work:
                vcenter.log_event(f"changes cluster {cluster}")
                act(fresh)
                return fresh, True
        todo = fresh
    raise NotPossible(
        f"the site changed each time between plan and action, {_TIMES} times in a row",
        code="plan.keeps-changing",
        target=cluster,
        hint="see in vCenter's recent tasks who works there, and run the command again afterwards",
    )
