from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fakes.pictures import seed_7u2
from vsphere_ml.cli.cluster.file_questions import NewFile, Questions
from vsphere_ml.cli.cluster.init import InitOptions
from vsphere_ml.cli.consent import Declined
from vsphere_ml.cli.options import SiteOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.cli.conftest import Shown

END_OF_INPUT = "\x04"


def ask(made: Shown) -> NewFile:
    return Questions(made.terminal, InitOptions(site=SiteOptions())).ask_all(seed_7u2(), {"lab": "default"}, "new.toml")


def test_enter_takes_the_first_choice(shown: Callable[..., Shown], person: Callable[[str], None]) -> None:
    person("\n" * 8)
    assert ask(shown()).answers.nodes == 2


@pytest.mark.parametrize("typed", [END_OF_INPUT, "\n" + END_OF_INPUT, "9\n" + END_OF_INPUT])
def test_the_end_of_input_chooses_nothing(
    typed: str, shown: Callable[..., Shown], person: Callable[[str], None]
) -> None:
    person(typed)
    with pytest.raises(Declined) as declined:
        ask(shown())
    assert declined.value.code == "confirm.declined"
