"""What is read of a guest that is to build Horovod, and what it is refused for."""

from __future__ import annotations

import pytest

from tests.unit.guest.recorder import answer
from tests.unit.guest.wheelhouse.site import ALL, ANSWERS, SILENT
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.core.tools.horovod import Carrier
from vsphere_ml.guest.wheelhouse.tools import BuildTools, Library, check_tools, probes, read


def tools(**answers: CommandAnswer) -> BuildTools:
    return read("node-1", {**ANSWERS, **answers})


def test_what_a_guest_says_is_read() -> None:
    assert tools() == BuildTools(
        node="node-1",
        python="3.11.2",
        python_tag="cp311",
        machine="x86_64",
        glibc="2.36",
        compiler="12.2.0",
        cuda=Library(home="/usr/local/cuda-12.5", version="12.5"),
        nccl=Library(home="/usr", version="2.22.3"),
        mpi=Library(home="/opt/ompi/bin", version="Open MPI 5.0.11"),
    )
    hydra = tools(mpi=answer("/usr/bin\nHYDRA build details:\n    Version:                                 4.0.2\n"))
    assert hydra.mpi == Library(home="/usr/bin", version="MPICH 4.0.2")


def test_every_probe_is_answered_in_the_tests() -> None:
    assert set(probes("python3", "", in_container=False)) == set(ANSWERS)


@pytest.mark.parametrize(
    ("silent", "carriers", "code", "hinted"),
    [
        ("g++", (Carrier.GLOO,), "runtime.no-compiler", "install -y g++"),
        ("make", (Carrier.GLOO,), "runtime.no-compiler", "install -y make"),
        ("python", (Carrier.GLOO,), "runtime.no-compiler", "install -y python3-dev python3-venv"),
        ("cuda", ALL, "runtime.no-cuda", "cuda-toolkit"),
        ("nccl", ALL, "runtime.no-cuda", "libnccl-dev"),
        ("mpi", ALL, "runtime.no-mpi", "libopenmpi-dev"),
    ],
)
def test_a_guest_that_cannot_build_it_is_refused(
    silent: str, carriers: tuple[Carrier, ...], code: str, hinted: str
) -> None:
    with pytest.raises(NotPossible) as refused:
        check_tools(tools(**{silent: SILENT}), carriers, in_container=False)
    assert (refused.value.code, refused.value.target) == (code, "node-1")
    assert hinted in refused.value.hint


@pytest.mark.parametrize("carriers", [(Carrier.GLOO,), (Carrier.MPI,), ALL])
def test_what_is_not_asked_for_need_not_be_there(carriers: tuple[Carrier, ...]) -> None:
    absent = {name: SILENT for name, each in (("cuda", Carrier.NCCL), ("mpi", Carrier.MPI)) if each not in carriers}
    check_tools(tools(**absent), carriers, in_container=True)


def test_a_container_that_is_not_there_is_said_before_what_it_misses() -> None:
    asked = probes("python3", "", in_container=True)
    assert {name for name, command in asked.items() if command.startswith("docker exec vsml-worker ")} == set(ANSWERS)
    silent = read("node-1", dict.fromkeys(asked, SILENT))
    with pytest.raises(NotPossible) as refused:
        check_tools(silent, ALL, in_container=True)
    assert (refused.value.code, refused.value.target) == ("runtime.no-container", "node-1")
    check_tools(tools(container=answer("")), ALL, in_container=True)


@pytest.mark.parametrize("odd", ["", "\n", "²", "Version", "a b c d e f", "{}" * 9])
def test_odd_answers_are_no_bug(odd: str) -> None:
    for name in ANSWERS:
        assert tools(**{name: CommandAnswer(0, odd)}).node == "node-1"
