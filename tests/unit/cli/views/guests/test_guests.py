from __future__ import annotations

from tests.unit.cli.views.guests.screens import NAMES, guest
from vsphere_ml.cli.views.guests import guests as view
from vsphere_ml.core.errors import GuestError
from vsphere_ml.flows.guests.configure import GuestPlan, GuestResult


def test_what_stands_before_the_question_names_only_guests_that_are_worked_on() -> None:
    fault = GuestError(reason="no answer", code="guest.unreachable", target=NAMES[1])
    seen = (guest(NAMES[0], lacks=True), GuestResult(node=NAMES[1], error=fault), guest(NAMES[2], lacks=False))
    stated = view.impact(GuestPlan(cluster="train", playbooks=(), guests=seen, after_boot=(NAMES[3],)), 1)
    assert [name for name in NAMES[:4] if name in stated] == [NAMES[0], NAMES[3]]
