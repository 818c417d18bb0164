"""`vsml check` reads the playbooks that a cluster file names, and what it sets for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.config.texts import ONE_NODE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Ended

OWN = """\
about = "What is mine."
[[step]]
kind = "file"
path = "/etc/mine"
template = "mine.j2"
"""


@pytest.mark.parametrize(
    ("guest", "error"),
    [
        ('playbooks = ["bsae"]', "no playbook `bsae` ships with vsml"),
        ('playbooks = ["./nowhere.toml"]', "nowhere.toml cannot be read: No such file or directory"),
        ('playbooks = ["container"]', "wants the value `image`, which the cluster file does not set"),
        ('playbooks = ["base"]\nsettings = { hugepage = "8" }', "no playbook asks for the setting `hugepage`"),
        ('playbooks = ["driver"]\nsettings = { driver_file = "grid-535.183.04.run" }', "which is not there"),
    ],
)
def test_what_is_wrong_with_playbooks_is_told(
    guest: str, error: str, vsml: Callable[..., Ended], tmp_path: Path
) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text(f"{ONE_NODE}\n[guest]\n{guest}\n")
    told = vsml("check", str(file))
    assert (told.status, error in told.err) == (2, True), told.err


def test_a_setting_may_be_for_a_template_or_for_nothing_that_is_known(
    vsml: Callable[..., Ended], tmp_path: Path
) -> None:
    file = tmp_path / "cluster.toml"
    (tmp_path / "mine.toml").write_text(OWN)
    (tmp_path / "mine.j2").write_text("{{ values.hugepage }}\n")
    settings = 'settings = { hugepage = "8", rack = "7", proxy = "http://proxy.example.com:3128" }'
    file.write_text(f'{ONE_NODE}\n[guest]\nplaybooks = ["base", "./mine.toml"]\n{settings}\n')
    told = vsml("check", str(file))
    assert told.status == 0, told.err
