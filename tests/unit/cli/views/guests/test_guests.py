from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.cli.views.guests.screens import NAMES, guest
from vsphere_ml.cli.views.guests import guests as view
from vsphere_ml.core.errors import GuestError
from vsphere_ml.flows.guests.configure import GuestPlan, GuestResult

if TYPE_CHECKING:
    from tests.golden import Golden


FAULT = GuestError(reason="no answer", code="guest.unreachable", target=NAMES[1])
SILENT = GuestResult(node=NAMES[1], error=FAULT)


def planned(*seen: GuestResult, after_boot: tuple[str, ...] = ()) -> GuestPlan:
    return GuestPlan(cluster="train", playbooks=(), guests=seen, after_boot=after_boot)


def test_what_stands_before_the_question_names_only_guests_that_are_worked_on() -> None:
    seen = (guest(NAMES[0], lacks=True), SILENT, guest(NAMES[2], lacks=False))
    stated = view.impact(planned(*seen, after_boot=(NAMES[3],)), 1)
    assert [name for name in NAMES[:4] if name in stated] == [NAMES[0], NAMES[3]]


def test_what_stands_before_the_question_names_who_is_not_begun_and_why(golden: Golden) -> None:
    seen = (*(guest(name, lacks=True) for name in (NAMES[0], NAMES[2], NAMES[3])),)
    golden(view.impact(planned(seen[0], SILENT, *seen[1:]), 1))
    assert view.impact(planned(SILENT, *seen), 1) == "", "nobody is asked"
    assert view.impact(planned(seen[0], SILENT, *seen[1:]), 0) == ""
