from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from vsphere_ml.core.errors import NotPossible
from vsphere_ml.lab import cache, folders, state

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.golden import Golden

BUILD = "0123456789abcdef" * 2
RUNTIME = "runtime-1111111111111111"
IMAGE = "image-cloud-2222222222222222"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with a program, a runtime and a root image, and no lab that runs."""
    monkeypatch.setenv("VSML_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("VSML_STATE_DIR", str(tmp_path / "state"))
    for name, file in ((BUILD, "vsml-lab-vcenter"), (RUNTIME, "made"), (IMAGE, "root/etc/os-release")):
        path = folders.cache() / name / file
        path.parent.mkdir(parents=True)
        path.write_bytes(os.urandom(100_000))
        (folders.cache() / f"{name}.lock").touch()
    return folders.cache()


@contextmanager
def running(*command: object) -> Iterator[int]:
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        process.stdout.readline()  # it says when it is ready
        yield process.pid
    finally:
        process.kill()
        process.communicate()


WAIT = "print(flush=True); import time; time.sleep(600)"


def names(things: list[cache.CacheEntry]) -> list[str]:
    return [each.name for each in things]


def test_everything_is_named_with_its_size_and_removed_with_its_lock(home: Path, golden: Golden) -> None:
    (home / "image-cloud-3333333333333333.lock").touch()  # its image was removed by an older version
    golden([each.what for each in cache.contents()])
    assert all(100_000 <= each.size < 150_000 for each in cache.contents())
    removed, cacheds = cache.remove()
    assert (names(removed), cacheds) == ([BUILD, IMAGE, RUNTIME], [])
    assert list(home.iterdir()) == []


def test_a_file_with_two_names_counts_once(home: Path) -> None:
    before = {each.name: each.size for each in cache.contents()}
    (home / RUNTIME / "again").hardlink_to(home / RUNTIME / "made")
    assert {each.name: each.size for each in cache.contents()}[RUNTIME] - before[RUNTIME] < 100_000


def test_no_cache_at_all_is_nothing_to_remove(home: Path) -> None:
    shutil.rmtree(home)
    assert cache.remove() == ([], [])


def test_what_go_keeps_read_only_is_removed(home: Path) -> None:
    module = home / "go-path" / "pkg" / "mod"
    module.mkdir(parents=True)
    (module / "go.mod").touch(0o444)
    module.chmod(0o555)
    removed, _ = cache.remove()
    assert "go-path" in names(removed)
    assert not module.exists()


def test_the_program_of_a_running_lab_is_kept(home: Path) -> None:
    with running(sys.executable, "-c", WAIT, home / BUILD / "vsml-lab-vcenter") as pid:
        removed, (cached,) = cache.remove()
    assert (cached.name, cached.user.split()[1]) == (BUILD, str(pid))
    assert BUILD not in names(removed)
    assert (home / BUILD / "vsml-lab-vcenter").exists()
    assert names(cache.remove()[0]) == [BUILD]


def test_what_somebody_is_making_is_kept(home: Path) -> None:
    with folders.hold_lock(home / f"{RUNTIME}.lock"):
        removed, cacheds = cache.remove()
    assert names(cacheds) == [RUNTIME]
    assert names(removed) == [BUILD, IMAGE]
    assert (home / f"{RUNTIME}.lock").exists()


def test_what_the_guests_of_a_running_lab_are_given_is_kept(home: Path) -> None:
    at = state.folder("default")
    (at / "guests").mkdir(parents=True)
    (at / "guests" / "runtime").symlink_to(home / RUNTIME)
    with running(sys.executable, "-c", WAIT, "serve", at) as pid:
        answers = dict.fromkeys(("url", "address", "username", "ca_file"), "x") | {"pid": pid}
        (at / "server.json").write_text(json.dumps(answers))
        _, cacheds = cache.remove()
    assert [(each.name, each.user) for each in cacheds] == [(RUNTIME, "lab default")]
    assert names(cache.remove()[0]) == [RUNTIME], "a lab that ended uses nothing"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_what_is_mounted_in_a_guest_is_kept(home: Path, tmp_path: Path) -> None:
    (tmp_path / "guest").mkdir()
    mount = f"mount --bind {home / IMAGE / 'root'} {tmp_path / 'guest'} && cd / && echo && exec sleep 600"
    with running("unshare", "--mount", "sh", "-c", mount):
        _, cacheds = cache.remove()
        assert names(cacheds) == [IMAGE]
    assert names(cache.remove()[0]) == [IMAGE]


def test_what_cannot_be_removed_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(shutil, "rmtree", refuse)
    with pytest.raises(NotPossible) as caught:
        cache.remove()
    assert caught.value.code == "lab.no-folder"
    assert caught.value.target.endswith(BUILD)
