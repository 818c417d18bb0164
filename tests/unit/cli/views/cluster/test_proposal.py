"""What a person is shown of guests before anything is done to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vsphere_ml.cli.terminal import show
from vsphere_ml.cli.views.cluster import proposal as view
from vsphere_ml.core.errors import GuestError
from vsphere_ml.core.plan.plan import Plan
from vsphere_ml.flows.guests.configure import GuestPlan, GuestResult
from vsphere_ml.guest.converge import Convergence, StepOutcome, StepState
from vsphere_ml.guest.playbooks.playbook import load_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.golden import Golden
    from tests.unit.cli.conftest import Shown

BOOK = load_text('about = "A file."\n[[step]]\nkind = "file"\npath = "/etc/a"\ntext = "x"\n', "mine.toml")
NOTHING = Plan(stages=())


def guest(node: str, missing: str | None) -> GuestResult:
    state = StepState.OK if missing is None else StepState.PENDING
    found = Convergence(
        node=node, playbook="mine", digest="d", outcomes=(StepOutcome(step="file /etc/a", state=state, drift=missing),)
    )
    return GuestResult(node=node, convergences=(found,))


def pending(*guests: GuestResult, after_boot: tuple[str, ...] = ()) -> GuestPlan:
    return GuestPlan(cluster="train", playbooks=(BOOK,), guests=guests, after_boot=after_boot)


def told(made: Shown, guests: GuestPlan | None, why: str = "") -> list[str]:
    show(made.terminal.out, view.both(NOTHING, guests, why))
    return made.out.getvalue().splitlines()


def test_guests_that_lack_the_same_step_stand_together(shown: Callable[..., Shown], golden: Golden) -> None:
    away = GuestResult(node="node-5", error=GuestError("node-5 does not answer", code="guest.unreachable"))
    seen = pending(
        guest("node-1", "/etc/a is not there"),
        guest("node-2", None),
        guest("node-3", "/etc/a differs"),
        away,
        after_boot=("node-4",),
    )
    golden(told(shown(), seen))


def test_guests_that_lack_nothing_are_nothing_to_do(shown: Callable[..., Shown], golden: Golden) -> None:
    golden(told(shown(), pending(guest("node-1", None)))[-2:])
    assert view.fields(NOTHING, pending(guest("node-1", None)), "")["empty"] is True
    assert view.fields(NOTHING, pending(guest("node-1", "x")), "")["empty"] is False


def test_guests_that_are_left_alone_are_said_to_be_so(shown: Callable[..., Shown], golden: Golden) -> None:
    golden(told(shown(), None, "--skip-guests"))
    fields: Any = view.fields(NOTHING, None, "--skip-guests")
    assert fields["guests"] == {"skipped_guests": "--skip-guests"}
