"""What a guest, or its training container, has to build Horovod with."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.hints import CommandLine
from vsphere_ml.core.nodes.container import NAME, SHARES, command_in_container
from vsphere_ml.core.tools.horovod import Carrier
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from vsphere_ml.core.model.guest import CommandAnswer

_PYTHON = """\
import importlib.util as u, os, platform as p, sys, sysconfig
print(p.python_version(), "cp%d%d" % sys.version_info[:2], p.machine(), p.libc_ver()[1] or "-")
os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")) and print("python3-dev")
u.find_spec("ensurepip") and print("python3-venv")
"""
_CUDA = """\
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc) && nvcc=$(readlink -f "$nvcc") || exit 1
echo "${nvcc%/bin/nvcc}"
"$nvcc" --version
"""
_NCCL = """\
for home in /usr /usr/local /usr/local/cuda /usr/local/nccl /opt/nccl; do
    [ -e $home/include/nccl.h ] || continue
    echo $home
    exec grep -E '^#define NCCL_(MAJOR|MINOR|PATCH) ' $home/include/nccl.h
done
exit 1
"""
_MPI = """\
mpirun=$(command -v {mpirun}) && [ -x "${{mpirun%/*}}/mpicxx" ] || exit 1
echo "${{mpirun%/*}}"
"$mpirun" --version
"""
_CUDA_RELEASE = re.compile(r"release (\d[\d.]*)")
_NCCL_VERSION = re.compile(r"^#define NCCL_(?:MAJOR|MINOR|PATCH) +(\d+)", re.MULTILINE)
_MPI_VERSION = re.compile(
    r"\((?P<family>Open MPI)\) (?P<version>\d[\w.]*)|^ *Version: +(?P<mpich>\d[\w.]*)", re.MULTILINE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """What Horovod is linked with: the folder that its build is given, and its version."""

    home: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildTools:
    """What is there to build with."""

    node: str
    python: str = ""  # its version; empty: there is none
    python_tag: str = ""  # cp311
    machine: str = ""
    glibc: str = ""
    compiler: str = ""  # version of g++
    missing: tuple[str, ...] = ()  # Debian packages
    has_container: bool = True  # that runs and shares its folder, where one is asked for
    cuda: Library | None = None
    nccl: Library | None = None
    mpi: Library | None = None


def probes(python: str, mpirun: str, *, in_container: bool) -> Mapping[str, str]:
    """Return what to ask the guest, of itself or of its training container."""
    asked = {
        "python": f"{shlex.quote(python)} -c {shlex.quote(_PYTHON)}",
        "g++": "g++ -dumpfullversion",
        "make": "command -v make",
        "cmake": "command -v cmake",
        "cuda": _CUDA,
        "nccl": _NCCL,
        "mpi": _MPI.format(mpirun=shlex.quote(mpirun or "mpirun")),
    }
    if not in_container:
        return asked
    return {name: command_in_container(command) for name, command in asked.items()} | {"container": SHARES}


def read(node: str, seen: Mapping[str, CommandAnswer]) -> BuildTools:
    """Return the answers as a value."""
    first, *there = seen["python"].out.splitlines() or [""]
    python, tag, machine, glibc = (*first.split(), *("",) * 4)[:4]
    missing = [each for each in ("g++", "make", "cmake") if not seen[each].ok]
    missing += [each for each in ("python3-dev", "python3-venv") if each not in there]
    return BuildTools(
        node=node,
        python=python,
        python_tag=tag,
        machine=machine,
        glibc=glibc,
        compiler=seen["g++"].text,
        missing=tuple(missing),
        has_container="container" not in seen or seen["container"].ok,
        cuda=_library(seen["cuda"], ".".join(_CUDA_RELEASE.findall(seen["cuda"].out)[:1])),
        nccl=_library(seen["nccl"], ".".join(_NCCL_VERSION.findall(seen["nccl"].out))),
        mpi=_library(seen["mpi"], _mpi_version(seen["mpi"].out)),
    )


def _library(answer: CommandAnswer, version: str) -> Library | None:
    return Library(home=answer.out.partition("\n")[0], version=version) if answer.ok and version else None


def _mpi_version(text: str) -> str:
    match = _MPI_VERSION.search(text)
    if match is None:
        return ""
    return f"Open MPI {match['version']}" if match["family"] else f"MPICH {match['mpich']}"


def check_tools(tools: BuildTools, carriers: Collection[Carrier], *, in_container: bool) -> None:
    """Raise NotPossible where something is missing.

    Of `runtime.no-container`, `runtime.no-compiler`, `runtime.no-cuda` and `runtime.no-mpi` the first that holds.
    """
    where = _Where(tools.node, in_container)
    if not tools.has_container:
        message = f"container {NAME} does not run, or does not share its folder"
        hint = '`vsml configure`, with the playbook "container"'
        raise NotPossible(f"{tools.node}: {message}", code="runtime.no-container", target=tools.node, hint=hint)
    if tools.missing:
        message = f"Horovod's build needs {', '.join(tools.missing)}"
        raise where.refusal(message, tools.missing, code="runtime.no-compiler")
    if Carrier.NCCL in carriers and (tools.cuda is None or tools.nccl is None):
        message = f"a Horovod with NCCL needs CUDA and NCCL, and there is no {'nccl.h' if tools.cuda else 'nvcc'}"
        raise where.refusal(message, ("cuda-toolkit", "libnccl-dev"), code="runtime.no-cuda")
    if Carrier.MPI in carriers and tools.mpi is None:
        message = "a Horovod with MPI needs an mpirun with mpicxx beside it"
        raise where.refusal(message, ("openmpi-bin", "libopenmpi-dev"), code="runtime.no-mpi")


@dataclass(frozen=True, slots=True)
class _Where:
    """Where it was to be built."""

    node: str
    in_container: bool

    def refusal(self, message: str, packages: Collection[str], *, code: str) -> NotPossible:
        where = f"{self.node}, container {NAME}" if self.in_container else self.node
        install = CommandLine(f"vsml run --sudo --only {self.node} -- apt-get install -y {' '.join(packages)}")
        hint = f"an image that has {', '.join(packages)}" if self.in_container else install
        return NotPossible(f"{where}: {message}", code=code, target=self.node, hint=hint)
