"""Steps can be named by number, kind or title."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.guest.toys import Lit, playbook
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.guest.playbooks.select import Selection

if TYPE_CHECKING:
    from tests.golden import Golden

BOOK = playbook(Lit(lamp="a"), Lit(lamp="b"), Lit(lamp="c"))


@pytest.mark.parametrize(
    ("selection", "chosen"),
    [
        (Selection(), "abc"),
        (Selection(steps=("2",)), "b"),
        (Selection(steps=("lamp c", "1")), "ac"),
        (Selection(steps=("lit",)), "abc"),
        (Selection(from_step="2"), "bc"),
        (Selection(from_step="lit"), "abc"),
        (Selection(from_step="lamp b", steps=("1", "3")), "c"),
    ],
)
def test_what_is_named_is_chosen_in_the_playbooks_order(selection: Selection, chosen: str) -> None:
    assert [step.title[-1] for step in selection.of(BOOK)] == list(chosen)


def test_a_name_of_no_step_is_answered_with_those_there_are(golden: Golden) -> None:
    with pytest.raises(ConfigError) as raised:
        Selection(steps=("lamp x",)).of(BOOK)
    assert raised.value.code == "guest.unknown-step"
    golden(raised.value)
