"""Steps can be named by number, kind or title."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.guest.toys import Lit, playbook
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.guest.playbooks.select import select_steps

if TYPE_CHECKING:
    from tests.golden import Golden

BOOK = playbook(Lit(lamp="a"), Lit(lamp="b"), Lit(lamp="c"))


@pytest.mark.parametrize(
    ("steps", "from_step", "chosen"),
    [
        ((), None, "abc"),
        (("2",), None, "b"),
        (("lamp c", "1"), None, "ac"),
        (("lit",), None, "abc"),
        ((), "2", "bc"),
        ((), "lit", "abc"),
        (("1", "3"), "lamp b", "c"),
    ],
)
def test_what_is_named_is_chosen_in_the_playbooks_order(
    steps: tuple[str, ...], from_step: str | None, chosen: str
) -> None:
    assert [step.title[-1] for step in select_steps(BOOK, steps, from_step).steps] == list(chosen)


def test_a_name_of_no_step_is_answered_with_those_there_are(golden: Golden) -> None:
    with pytest.raises(ConfigError) as raised:
        select_steps(BOOK, ("lamp x",))
    assert raised.value.code == "guest.unknown-step"
    golden(raised.value)
