"""A wheelhouse is brought here whole or not at all, and its build leaves nothing in the guest however it ends."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from tests.fakes.guests import FakeGuests
from tests.unit.guest.recorder import Recorder
from tests.unit.guest.wheelhouse.site import ANSWERS, SILENT, request
from vsphere_ml.core.errors import ConfigError, NotPossible, VsmlError
from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.core.ports.vcenter import GuestPlace
from vsphere_ml.flows.guests.wheelhouse import build_wheelhouse
from vsphere_ml.guest.events import Applying, GuestEnded

if TYPE_CHECKING:
    from pathlib import Path

    from vsphere_ml.guest.events import GuestEvent
    from vsphere_ml.guest.wheelhouse.manifest import WheelhouseManifest

PLACE = GuestPlace(name="node-1", address="10.0.0.11", vm="vm-1")
WHEEL, CONTENT = "horovod-0.28.1-cp311-cp311-linux_x86_64.whl", "a wheel"
LISTED = f"{hashlib.sha256(CONTENT.encode()).hexdigest()} \n{len(CONTENT)} {WHEEL}\n"


@dataclass(slots=True)
class Builder(Recorder):
    """A guest whose build comes to its end; what it says of Horovod and of its wheels is the test's."""

    unreachable: bool = False
    carriers: str = "nccl mpi gloo"
    listed: str = LISTED
    interrupted: bool = False
    fetched: list[str] = field(default_factory=list)

    def run(self, command: str, **given: Any) -> CommandAnswer:
        Recorder.run(self, command, **given)
        if "_built" in command and self.interrupted:
            raise KeyboardInterrupt
        out = self.carriers if "_built" in command else self.listed if "sha256sum" in command else ""
        return CommandAnswer(0, out)

    def get(self, path: str, local: Path) -> None:
        self.fetched.append(path)
        local.write_text(CONTENT)


def built(guest: Builder, into: Path, events: list[GuestEvent] | None = None) -> WheelhouseManifest:
    guests = FakeGuests(there={"node-1": guest})  # type: ignore[dict-item]
    notify = (events if events is not None else []).append
    return build_wheelhouse(guests, PLACE, request(), into=into, notify=notify)


def is_cleaned(guest: Builder) -> bool:
    """Return whether the last thing that the guest was told is to end the build and remove its folder."""
    return "rm -rf /var/tmp/vsml-bench/wheelhouse-" in guest.told[-1] and guest.told[-1].startswith("pkill")


def test_the_folder_has_wheels_and_a_manifest(tmp_path: Path) -> None:
    guest, events = Builder(answers=ANSWERS), list[Any]()
    made = built(guest, tmp_path / "new" / "wheels", events)
    assert sorted(each.name for each in (tmp_path / "new" / "wheels").iterdir()) == [WHEEL, "manifest.json"]
    written = json.loads((tmp_path / "new" / "wheels" / "manifest.json").read_text())
    assert (written["schema"], written["framework"]) == ("vsml.wheelhouse/1", "tensorflow==2.18.1")
    assert written["carriers"] == ["nccl", "mpi", "gloo"]
    assert written["wheels"][0]["sha256"] == made.wheels[0].sha256
    assert list((tmp_path / "new").iterdir()) == [tmp_path / "new" / "wheels"]
    assert is_cleaned(guest)
    steps = [each for each in events if isinstance(each, Applying)]
    assert [each.number for each in steps] == [*range(1, 7)]
    assert {each.steps for each in steps} == {6}
    assert isinstance(events[-1], GuestEnded)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"refuses": "_built"}, "guest.command-failed"),
        ({"carriers": "gloo"}, "runtime.not-built"),
        ({"listed": LISTED.replace("7 horovod", "7 h").replace("a", "b")}, "guest.file-unreadable"),
    ],
)
def test_a_build_that_fails_leaves_nothing_on_either_side(tmp_path: Path, changes: dict[str, str], code: str) -> None:
    guest = Builder(answers=ANSWERS, **changes)  # type: ignore[arg-type]
    with pytest.raises(VsmlError) as failed:
        built(guest, tmp_path / "wheels")
    assert failed.value.code == code
    assert list(tmp_path.iterdir()) == []
    assert is_cleaned(guest)


def test_a_build_that_is_interrupted_leaves_nothing(tmp_path: Path) -> None:
    guest = Builder(answers=ANSWERS, interrupted=True)
    with pytest.raises(KeyboardInterrupt):
        built(guest, tmp_path / "wheels")
    assert list(tmp_path.iterdir()) == []
    assert is_cleaned(guest)


def test_what_a_guest_lacks_is_told_before_anything_is_done(tmp_path: Path) -> None:
    guest = Builder(answers={**ANSWERS, "cuda": SILENT})
    with pytest.raises(NotPossible) as refused:
        built(guest, tmp_path / "wheels")
    assert refused.value.code == "runtime.no-cuda"
    assert guest.told == []
    with pytest.raises(VsmlError) as unreached:
        built(Builder(unreachable=True), tmp_path / "wheels")
    assert unreached.value.code == "guest.unreachable"


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    guest = Builder(answers=ANSWERS)
    (tmp_path / "mine").touch()
    for into in (tmp_path, tmp_path / "mine"):
        with pytest.raises(ConfigError) as refused:
            built(guest, into)
        assert refused.value.code == "runtime.exists"
    assert (guest.asked, guest.told) == ([], [])


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(ConfigError) as refused:
        built(Builder(answers=ANSWERS), tmp_path / "mine" / "wheels")
    assert refused.value.code == "file.unwritable"
