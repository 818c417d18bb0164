"""`vsml check` reads the playbooks that a cluster file names, and what it sets for them."""

from __future__ import annotations

import json
import os
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
    ("guest", "code", "place"),
    [
        ('playbooks = ["bsae"]', "playbook.unknown", "guest.playbooks[0]"),
        ('playbooks = ["./nowhere.toml"]', "playbook.unreadable", "guest.playbooks[0]"),
        ('playbooks = ["container"]', "playbook.invalid", "step[4].image"),
        ('playbooks = ["base"]\nsettings = { hugepage = "8" }', "guest.unknown-setting", "guest.settings"),
        (
            'playbooks = ["driver"]\nsettings = { driver_file = "grid-535.183.04.run" }',
            "playbook.file-missing",
            "guest.playbooks[0]",
        ),
    ],
)
def test_what_is_wrong_with_playbooks_is_said_with_its_place(
    guest: str, code: str, place: str, vsml: Callable[..., Ended], tmp_path: Path
) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text(f"{ONE_NODE}\n[guest]\n{guest}\n")
    ended = vsml("check", str(file), "-o", "json")
    (error,) = json.loads(ended.out)["errors"]
    assert (ended.status, error["code"]) == (2, code)
    assert f": {place}: " in error["details"][0]


def test_a_setting_may_be_for_a_template_or_for_nothing_that_is_known(
    vsml: Callable[..., Ended], tmp_path: Path
) -> None:
    file = tmp_path / "cluster.toml"
    (tmp_path / "mine.toml").write_text(OWN)
    (tmp_path / "mine.j2").write_text("{{ values.hugepage }}\n")
    settings = 'settings = { hugepage = "8", rack = "7", proxy = "http://proxy.example.com:3128" }'
    file.write_text(f'{ONE_NODE}\n[guest]\nplaybooks = ["base", "./mine.toml"]\n{settings}\n')
    ended = vsml("check", str(file))
    assert ended.status == 0, ended.err


def guests(tmp_path: Path, template: bytes, more: str = "", guest: str = "") -> Path:
    """Return a cluster file whose playbook has one file, made of this template."""
    file = tmp_path / "cluster.toml"
    (tmp_path / "mine.toml").write_text(OWN + more)
    (tmp_path / "mine.j2").write_bytes(template)
    file.write_text(f'{ONE_NODE}\n[guest]\nplaybooks = ["./mine.toml"]\n{guest}')
    return file


@pytest.mark.parametrize(
    ("template", "line"),
    [
        (b"{{ name + 1 }}", 1),
        (b"\n{{ 1/0 }}", 2),
        (b"\n\n{{ gpus | sort }}", 3),
        (b"{% include 'x' %}", 1),
        (b"{% extends 'x' %}", 1),
        (b"\n{% for peer in peers %}{{ peer.nobody }}{% endfor %}", 2),
        (b"{{ values.nobody }}", 1),
        (b"{{ 'x' * 10 ** 10 }}", 1),
    ],
)
def test_check_renders_every_template(template: bytes, line: int, vsml: Callable[..., Ended], tmp_path: Path) -> None:
    ended = vsml("check", str(guests(tmp_path, template)))
    assert (ended.status, f"mine.j2:{line}: " in ended.err) == (2, True), ended.err


def test_check_runs_nothing_of_a_template(vsml: Callable[..., Ended], tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    find = "{% for c in name.__class__.__mro__[-1].__subclasses__() if c.__name__ == '_wrap_close' %}"
    run = "{{ c.__init__.__globals__['popen']('touch " + str(proof) + "').read() }}{% endfor %}"
    ended = vsml("check", str(guests(tmp_path, (find + run).encode())))
    assert (ended.status, proof.exists()) == (2, False), ended.err


def test_every_mistake_of_all_templates_and_playbooks_is_told_at_once(
    vsml: Callable[..., Ended], tmp_path: Path
) -> None:
    more = '[[step]]\nkind = "file"\npath = "/etc/other"\ntemplate = "other.j2"\n'
    file = guests(tmp_path, b"{{ 1/0 }}", more)
    (tmp_path / "other.j2").write_text("\n{{ name + 1 }}")
    file.write_text(file.read_text().replace('mine.toml"', 'mine.toml", "bsae", "./nowhere.toml", "driver"'))
    ended = vsml("check", str(file))
    line = next(at for at, each in enumerate(file.read_text().splitlines(), 1) if "bsae" in each)
    wanted = ["mine.j2:1: ", "other.j2:2: ", f"cluster.toml:{line}: guest.playbooks[1]: ", "guest.playbooks[2]: "]
    assert ended.status == 2
    assert [each for each in [*wanted, "step[0].source"] if each not in ended.err] == [], ended.err


@pytest.mark.parametrize(
    ("more", "guest"),
    [
        ("", 'settings = { proxy = "http://[::1:3128" }'),
        ('[[step]]\nkind = "ofed"\nsource = "https://[mirror/x"\n', ""),
        ('[[step]]\nkind = "apt_repository"\nname = "x"\nurl = "https://[mirror/x"\n', ""),
        ("a." * 50_000 + "b = 1\n", ""),
        ("a = " + "9" * 5000 + "\n", ""),
    ],
)
def test_plain_mistakes_are_no_bugs(more: str, guest: str, vsml: Callable[..., Ended], tmp_path: Path) -> None:
    ended = vsml("check", str(guests(tmp_path, b"{{ name }}", more, guest)))
    assert ended.status == 2, ended.err  # and not 1, which is a bug


@pytest.mark.parametrize("make", [b"\xff\n", b"x" * (256 << 10) + b"x", "fifo", "folder", "endless"])
def test_a_template_that_cannot_be_read_is_told(make: bytes | str, vsml: Callable[..., Ended], tmp_path: Path) -> None:
    file = guests(tmp_path, make if isinstance(make, bytes) else b"")
    if isinstance(make, str):
        (tmp_path / "mine.j2").unlink()
    if make == "fifo":
        os.mkfifo(tmp_path / "mine.j2")
    elif make == "folder":
        (tmp_path / "mine.j2").mkdir()
    elif make == "endless":
        (tmp_path / "mine.j2").symlink_to("/dev/zero")
    ended = vsml("check", str(file))
    assert (ended.status, "step[0].template" in ended.err) == (2, True), ended.err


def test_a_playbook_may_begin_with_a_byte_order_mark(vsml: Callable[..., Ended], tmp_path: Path) -> None:
    file = guests(tmp_path, "\ufeff{{ name }}".encode(), guest='settings = { rack = "7" }')
    (tmp_path / "mine.toml").write_text("\ufeff" + OWN)
    ended = vsml("check", str(file))
    assert ended.status == 0, ended.err
