"""The command lines of a build, by what is asked for; what they print, read; and that they are shell."""

from __future__ import annotations

import shlex
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.unit.guest.recorder import Recorder
from tests.unit.guest.wheelhouse.site import ALL, ANSWERS, request
from vsphere_ml.core.errors import GuestError
from vsphere_ml.core.tools.horovod import CXX17, Carrier, FrameworkName, find_package
from vsphere_ml.guest.wheelhouse import build, manifest
from vsphere_ml.guest.wheelhouse.tools import read

if TYPE_CHECKING:
    from vsphere_ml.guest.wheelhouse.build import WheelhouseRequest

FOLDER = build.work_folder("abc")
TOOLS = read("node-1", ANSWERS)


def commands(asked: WheelhouseRequest) -> list[str]:
    return [each.command for each in build.stages(FOLDER, asked, TOOLS)]


def exported(command: str) -> dict[str, str]:
    """Return the variables that a command sets."""
    words = (word for word in shlex.split(command, posix=True) if "=" in word and word[:1].isupper())
    return dict(word.rstrip(";").split("=", 1) for word in words)


@pytest.mark.parametrize(
    ("framework", "carriers", "wanted", "absent"),
    [
        (
            FrameworkName.TENSORFLOW,
            ALL,
            {
                "HOROVOD_WITH_TENSORFLOW": "1",
                "HOROVOD_WITHOUT_PYTORCH": "1",
                "HOROVOD_WITH_MPI": "1",
                "HOROVOD_WITH_GLOO": "1",
                "HOROVOD_GPU_OPERATIONS": "NCCL",
                "HOROVOD_CUDA_HOME": "/usr/local/cuda-12.5",
                "HOROVOD_NCCL_HOME": "/usr",
                "CXXFLAGS": "-w",  # a build for GPUs wants XLA's own headers
            },
            {"CXX"},
        ),
        (
            FrameworkName.TENSORFLOW,
            (Carrier.GLOO,),
            {"HOROVOD_WITHOUT_MPI": "1", "HOROVOD_WITH_GLOO": "1", "CXXFLAGS": f"-w -I{FOLDER}/stubs"},
            {"HOROVOD_GPU_OPERATIONS", "HOROVOD_CUDA_HOME", "HOROVOD_WITH_MPI"},
        ),
        (
            FrameworkName.PYTORCH,
            (Carrier.NCCL, Carrier.MPI),
            {"HOROVOD_WITH_PYTORCH": "1", "HOROVOD_WITHOUT_TENSORFLOW": "1", "HOROVOD_WITHOUT_GLOO": "1"}
            | {"CXX": f"{FOLDER}/compiler"},
            {"HOROVOD_WITH_GLOO"},
        ),
    ],
)
def test_horovod_is_built_with_what_is_asked_for(
    framework: FrameworkName, carriers: tuple[Carrier, ...], wanted: dict[str, str], absent: set[str]
) -> None:
    made = exported(commands(request(framework, carriers))[3])
    assert wanted.items() <= made.items()
    assert absent.isdisjoint(made)
    assert made["PATH"].startswith(f"{FOLDER}/venv/bin")
    assert ("/opt/ompi/bin" in made["PATH"]) == (Carrier.MPI in carriers)


def test_packages_come_from_an_index_or_from_a_folder() -> None:
    index = commands(replace(request(), index="https://index.example.com/simple"))
    folder = commands(replace(request(), packages=Path("/srv/packages")))
    for at in (0, 1, 3):
        assert "--index-url https://index.example.com/simple" in index[at]
        assert f"--no-index --find-links {FOLDER}/packages" in folder[at]
    for at in (2, 4):
        assert f"--no-index --find-links {FOLDER}/wheels" in index[at]


def test_a_proxy_and_a_container_are_gone_through() -> None:
    proxy = {"proxy": "http://proxy.example.com:3128"}
    command = commands(replace(request(), in_container=True, settings=proxy))[1]
    *docker, inner = shlex.split(command)
    assert docker == ["docker", "exec", "vsml-worker", "sh", "-c"]
    assert "https_proxy=http://proxy.example.com:3128" in inner


@pytest.mark.parametrize("framework", FrameworkName)
def test_all_of_it_is_shell(framework: FrameworkName) -> None:
    for command in (*commands(request(framework)), build.list_wheels(FOLDER)):
        subprocess.run(["sh", "-n", "-c", command], check=True)


def test_nothing_is_left_of_a_build() -> None:
    shell = Recorder()
    build.clean_up(shell, FOLDER)
    (told,) = shell.told
    assert shlex.split(told.partition(";")[0])[-1] == "[/]var/tmp/vsml-bench/wheelhouse-abc/"
    assert told.endswith(f"rm -rf {FOLDER}")


def test_a_folder_of_packages_is_brought(tmp_path: Path) -> None:
    for name in ("a-1-py3-none-any.whl", "horovod-0.28.1.tar.gz", "notes.txt"):
        (tmp_path / name).touch()
    shell = Recorder()
    build.bring_packages(shell, FOLDER, tmp_path)
    assert [each.rpartition("/")[2] for each in shell.told] == ["a-1-py3-none-any.whl", "horovod-0.28.1.tar.gz"]


def test_what_is_listed_is_read(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    (wheels / "horovod-0.28.1-cp311-cp311-linux_x86_64.whl").write_text("abc")
    (wheels / "psutil-7.2.2-1local-cp36-abi3-linux_x86_64.whl").write_text("")
    printed = subprocess.run(
        ["sh", "-c", build.list_wheels(str(tmp_path))], check=True, capture_output=True, text=True
    ).stdout
    horovod, psutil = manifest.read_wheels("node-01", printed)
    assert (horovod.name, horovod.version, horovod.python_tag, horovod.size) == ("horovod", "0.28.1", "cp311", 3)
    assert horovod.sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert (psutil.version, psutil.python_tag) == ("7.2.2", "cp36")


def test_a_manifest_has_what_horovod_was_built_with_and_no_more() -> None:
    made = manifest.describe_build(request(carriers=(Carrier.GLOO,)), TOOLS, (), "2026-11-29T10:00:00+00:00")
    assert (made.cuda, made.nccl, made.mpi) == ("", "", "")
    made = manifest.describe_build(request(), TOOLS, (), "2026-11-29T10:00:00+00:00")
    assert (made.cuda, made.nccl, made.mpi) == ("12.5", "2.22.3", "Open MPI 5.0.11")
    assert made.requirements == ("tensorflow==2.18.1", "horovod==0.28.1")


def test_cxx17_takes_the_place_of_older_standards(tmp_path: Path) -> None:
    (tmp_path / "g++").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "g++").chmod(0o755)
    (tmp_path / "compiler").write_text(CXX17)
    words = ["-c", "a b.cc", "-std=gnu++14", "-DX=-std=c++14", "-std=c++11"]
    said = subprocess.run(
        ["sh", tmp_path / "compiler", *words],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert said.splitlines() == ["-c", "a b.cc", "-std=c++17", "-DX=-std=c++14", "-std=c++17"]


@pytest.mark.parametrize(
    ("asked", "framework", "package"),
    [
        ("tensorflow", FrameworkName.TENSORFLOW, "tensorflow==2.18.1"),
        ("tensorflow-cpu==2.21.0", FrameworkName.TENSORFLOW, "tensorflow-cpu==2.21.0"),
        ("torch==2.4.0", FrameworkName.PYTORCH, "torch==2.4.0"),
    ],
)
def test_a_framework_is_named_or_given_as_a_package(asked: str, framework: FrameworkName, package: str) -> None:
    found = find_package(asked)
    assert found is not None
    assert (found[0].name, found[1]) == (framework, package)


@pytest.mark.parametrize("asked", ["", "mxnet", "mxnet==1.9", "tensorflow-cpu", "=="])
def test_what_is_no_framework_is_none(asked: str) -> None:
    assert find_package(asked) is None


@pytest.mark.parametrize(
    "about",
    ["12 ../../horovod-0.28.1-cp311-cp311-linux_x86_64.whl", "12 horovod.whl", "horovod-0.28.1-py3-none-any.whl"],
)
def test_what_is_no_wheel_of_the_folder_is_refused(about: str) -> None:
    with pytest.raises(GuestError) as refused:
        manifest.read_wheels("node-01", f"{'0' * 64}\n{about}\n")
    assert (refused.value.code, refused.value.target) == ("guest.unexpected-output", "node-01")
