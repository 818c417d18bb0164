"""A guest converges: one look when nothing is missing, an apply believed only once seen, one reboot for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.counted import checked, counted
from tests.fakes.converging import check, converge
from tests.unit.guest.cluster import NODE_1
from tests.unit.guest.toys import AfterBoot, Lamps, Lit, playbook
from vsphere_ml.core.errors import GuestError
from vsphere_ml.guest import converge as product
from vsphere_ml.guest.converge import Convergence, StepState
from vsphere_ml.guest.events import Applied, Applying, GuestChecked, GuestEvent, Rebooting

if TYPE_CHECKING:
    from tests.golden import Golden

THREE = playbook(Lit(lamp="a"), Lit(lamp="b"), Lit(lamp="c"))


def ignore(_event: GuestEvent) -> None:
    pass


def states(convergence: Convergence) -> list[str]:
    return [outcome.state.value for outcome in convergence.outcomes]


def test_a_guest_that_lacks_nothing_costs_one_round_trip() -> None:
    guest = Lamps(lit={"a", "b", "c"})
    done = converge(THREE, guest, NODE_1, ignore)
    assert (guest.questions, guest.history, done.changed) == (1, [], False)
    assert states(done) == ["ok", "ok", "ok"]


def test_only_what_lacks_is_applied_and_in_order(golden: Golden) -> None:
    guest = Lamps(lit={"b"})
    done = converge(THREE, guest, NODE_1, ignore)
    assert guest.history == ["set a", "set c"]
    assert states(done) == ["changed", "ok", "changed"]
    golden(done.outcomes[0].drift)
    assert guest.questions == 1 + 2 + 1  # the first look, one after each apply, and one at everything


def test_a_check_tells_every_lack_in_one_round_trip_and_changes_nothing(golden: Golden) -> None:
    guest = Lamps(lit={"b"})
    seen = check(THREE, guest, NODE_1)
    assert [each.step for each in seen.pending] == ["lamp a", "lamp c"]
    golden([each.drift for each in seen.pending])
    assert (guest.questions, guest.history) == (1, [])
    assert seen.outcomes[1].state is StepState.OK


def test_an_apply_that_succeeds_and_does_nothing_is_not_believed(golden: Golden) -> None:
    guest = Lamps(deaf={"set a"})
    with pytest.raises(GuestError) as raised:
        converge(THREE, guest, NODE_1, ignore)
    assert raised.value.code == "guest.step-failed"
    golden(raised.value)
    assert raised.value.details == ("asked: a",)
    assert guest.history == ["set a"]  # nothing after it was tried


def test_a_command_that_fails_is_told_with_step_command_and_last_lines(golden: Golden) -> None:
    guest = Lamps(broken={"set b"})
    with pytest.raises(GuestError) as raised:
        converge(THREE, guest, NODE_1, ignore)
    assert raised.value.code == "guest.step-failed"
    golden(raised.value)
    assert raised.value.details == ("last words",)
    assert isinstance(raised.value.__cause__, GuestError)


def test_several_steps_share_one_reboot_and_those_that_need_it_wait() -> None:
    guest = Lamps()
    book = playbook(
        Lit(lamp="driver", boot=True), AfterBoot(lamp="licence"), Lit(lamp="ofed", boot=True), Lit(lamp="x")
    )
    done = converge(book, guest, NODE_1, ignore)
    assert guest.history == ["later driver", "later ofed", "set x", "reboot", "set licence"]
    assert done.rebooted
    assert states(done) == ["changed"] * 4


def test_a_guest_is_never_rebooted_twice(golden: Golden) -> None:
    guest = Lamps(deaf={"later driver"})
    with pytest.raises(GuestError) as caught:
        converge(playbook(Lit(lamp="driver", boot=True)), guest, NODE_1, ignore)
    assert (caught.value.code, caught.value.target) == ("guest.step-failed", "node-1")
    golden(caught.value)
    assert guest.reboots == 1


def test_steps_that_undo_each_other_are_told(golden: Golden) -> None:
    guest = Lamps()
    with pytest.raises(GuestError) as caught:
        converge(playbook(Lit(lamp="a"), Lit(lamp="b", dims="a")), guest, NODE_1, ignore)
    assert (caught.value.code, caught.value.target) == ("guest.step-failed", "node-1")
    golden(caught.value)


def test_listeners_hear_what_happens(golden: Golden) -> None:
    events: list[GuestEvent] = []
    converge(playbook(Lit(lamp="a", boot=True)), Lamps(), NODE_1, events.append)
    assert [type(event) for event in events] == [GuestChecked, Applying, Applied, Rebooting, GuestChecked]
    golden(events)


LAMPS = st.sampled_from("abcdef")
STEPS = st.lists(
    st.builds(Lit, lamp=LAMPS, boot=st.booleans()) | st.builds(AfterBoot, lamp=LAMPS), max_size=8, min_size=1
)


@counted
@given(steps=STEPS, lit=st.sets(LAMPS))
def test_a_converged_guest_needs_nothing(steps: list[Lit], lit: set[str]) -> None:
    guest = Lamps(lit=set(lit))
    if converge(playbook(*steps), guest, NODE_1, ignore).changed:
        checked()
    assert not check(playbook(*steps), guest, NODE_1).pending
    before = (list(guest.history), guest.questions)
    assert not converge(playbook(*steps), guest, NODE_1, ignore).changed
    assert (guest.history, guest.questions) == (before[0], before[1] + 1)


def test_what_was_changed_before_a_step_failed_is_counted() -> None:
    guest = Lamps(broken={"set b"})
    reached, error = product.converge(THREE, guest, NODE_1, ignore)
    assert error is not None
    assert error.code == "guest.step-failed"
    assert states(reached) == ["changed", "pending", "pending"]


def test_a_step_that_was_applied_in_vain_is_not_counted() -> None:
    reached, error = product.converge(THREE, Lamps(lit={"c"}, deaf={"set b"}), NODE_1, ignore)
    assert error is not None
    assert states(reached) == ["changed", "pending", "ok"]
