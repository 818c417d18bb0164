from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from tests.unit.lab import standin
from vsphere_ml.core.errors import ConfigError, NotPossible
from vsphere_ml.lab import build, server, state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.golden import Golden


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Put a stand-in in the place of the built program, and state in a folder of the test's own."""
    monkeypatch.setenv("VSML_STATE_DIR", str(tmp_path / "state"))

    def use(text: str) -> None:
        path = standin.program(tmp_path, text)
        monkeypatch.setattr(build, "binary", lambda _say: path)

    yield use
    for name in state.names():
        server.stop_lab(name)


def test_a_lab_that_was_started_is_found_and_its_password_is_for_its_owner_only(install: Callable[[str], None]) -> None:
    install(standin.GOOD)
    lab, started = server.start_lab()
    assert started
    assert state.find() == lab
    assert stat.S_IMODE(lab.password_file.stat().st_mode) == 0o600
    assert len(lab.password()) >= 24
    assert lab.password() not in str(lab)


def test_the_lab_leads_a_session_of_its_own_so_that_ctrl_c_does_not_reach_it(install: Callable[[str], None]) -> None:
    install(standin.GOOD)
    lab, _ = server.start_lab()
    assert os.getsid(lab.pid) == lab.pid


def test_up_twice_leaves_the_running_one_alone(install: Callable[[str], None]) -> None:
    install(standin.GOOD)
    first, _ = server.start_lab()
    again, started = server.start_lab()
    assert not started
    assert again == first


def test_up_with_another_topology_refuses_rather_than_pretend(install: Callable[[str], None], golden: Golden) -> None:
    install(standin.GOOD)
    server.start_lab("quad-8.0u3")
    with pytest.raises(NotPossible) as refusal:
        server.start_lab("seed-7.0u2")
    assert (refusal.value.code, refusal.value.target) == ("lab.other-topology", "default")
    golden(refusal.value)
    assert refusal.value.code == "lab.other-topology"


def test_two_labs_stand_side_by_side(install: Callable[[str], None]) -> None:
    install(standin.GOOD)
    one, _ = server.start_lab(name="one")
    two, _ = server.start_lab(name="two")
    assert one.pid != two.pid
    assert state.names() == ["one", "two"]
    assert server.stop_lab("one")
    assert state.find("two") == two


def test_down_ends_the_process_and_removes_what_it_kept(install: Callable[[str], None], tmp_path: Path) -> None:
    install(standin.GOOD)
    lab, _ = server.start_lab()
    assert server.stop_lab()
    assert not state.runs(lab.pid, state.folder("default"))
    assert not state.folder("default").exists()
    assert not server.stop_lab()


def test_a_lab_that_ignores_the_request_to_end_is_killed(
    install: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "STOP_DEADLINE_S", 0.2)
    install(standin.STUBBORN)
    lab, _ = server.start_lab()
    assert server.stop_lab()
    assert not state.runs(lab.pid, state.folder("default"))


def test_what_a_killed_lab_left_behind_is_no_lab_and_does_not_hinder_the_next(install: Callable[[str], None]) -> None:
    install(standin.GOOD)
    dead, _ = server.start_lab()
    os.kill(dead.pid, 9)
    os.waitpid(dead.pid, 0)
    assert state.find() is None
    lab, started = server.start_lab()
    assert started
    assert lab.pid != dead.pid


def test_another_process_with_the_same_id_is_not_taken_for_the_lab(install: Callable[[str], None]) -> None:
    install(standin.GOOD)
    lab, _ = server.start_lab()
    path = state.folder("default") / "server.json"
    path.write_text(path.read_text().replace(f'"pid": {lab.pid}', f'"pid": {os.getpid()}'))
    assert state.find() is None
    assert not server.stop_lab()
    assert not state.runs(lab.pid, state.folder("default"))  # the one we started is ended all the same


def test_a_refused_topology_shows_the_programs_own_words(install: Callable[[str], None], golden: Golden) -> None:
    install(standin.REFUSING)
    with pytest.raises(ConfigError) as refusal:
        server.start_lab()
    assert refusal.value.code == "lab.topology-invalid"
    golden(refusal.value.details)
    assert not state.folder("default").exists()


def test_a_lab_that_ends_at_once_shows_its_last_words(install: Callable[[str], None], golden: Golden) -> None:
    install(standin.CRASHING)
    with pytest.raises(NotPossible, match="status 3") as failure:
        server.start_lab()
    golden(failure.value.details)


@pytest.mark.parametrize("variable", ["VSML_STATE_DIR", "VSML_CACHE_DIR"])
def test_a_folder_that_cannot_be_written_is_named_with_a_way_out(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("VSML_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv(variable, str(tmp_path / "file"))
    with pytest.raises(NotPossible) as refusal:
        server.start_lab()
    assert refusal.value.code == "lab.no-folder"
    assert refusal.value.target == str(tmp_path / "file" / "lab")
    assert variable in refusal.value.hint


def test_an_unknown_topology_names_the_nearest(install: Callable[[str], None], golden: Golden) -> None:
    install(standin.GOOD)
    with pytest.raises(ConfigError) as refusal:
        server.start_lab("quad-8.0u2")
    golden(refusal.value.hint)


@pytest.mark.parametrize("name", ["", "..", "a/b", ".hidden", "x" * 60])
def test_a_name_that_could_leave_the_folder_is_refused(name: str, golden: Golden) -> None:
    with pytest.raises(ConfigError) as caught:
        server.start_lab(name=name)
    assert caught.value.code == "lab.bad-name"
    golden(caught.value)


def test_asking_for_a_lab_that_does_not_run_says_how_to_start_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setenv("VSML_STATE_DIR", str(tmp_path))
    with pytest.raises(NotPossible) as refusal:
        state.running_lab("seed")
    golden(refusal.value.hint)
