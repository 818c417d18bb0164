"""The manifest of a wheelhouse: its wheels, and what Horovod in it was built against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vsphere_ml.core.tools.horovod import HOROVOD, Carrier

if TYPE_CHECKING:
    from vsphere_ml.guest.wheelhouse.build import WheelhouseRequest
    from vsphere_ml.guest.wheelhouse.tools import BuildTools

SCHEMA = "vsml.wheelhouse/1"
FILE = "manifest.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """One file; `size` in bytes."""

    file: str
    name: str
    version: str
    python_tag: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelhouseManifest:
    """What a wheelhouse holds. A version is empty where Horovod was not built with that."""

    schema: str = SCHEMA
    built: str  # when, in UTC
    node: str
    in_container: bool
    framework: str  # with its version
    horovod: str
    carriers: tuple[Carrier, ...]
    python: str
    python_tag: str
    machine: str
    glibc: str
    compiler: str
    cuda: str
    nccl: str
    mpi: str
    wheels: tuple[Wheel, ...]

    @property
    def requirements(self) -> tuple[str, ...]:
        """What the playbook `runtime` installs from it."""
        return self.framework, self.horovod

    @property
    def size(self) -> int:
        """Bytes of all wheels."""
        return sum(each.size for each in self.wheels)


def read_wheels(printed: str) -> tuple[Wheel, ...]:
    """Return the wheels that `list_wheels` printed, two lines each."""
    lines = printed.split("\n")
    pairs = zip(lines[::2], lines[1::2], strict=False)
    return tuple(_wheel(sha256.strip(), *about.split(" ", 1)) for sha256, about in pairs if about)


def _wheel(sha256: str, size: str, file: str) -> Wheel:
    # PEP 427: name, version, perhaps a build's number, then three tags.
    name, version, *_, python_tag, _, _ = file.removesuffix(".whl").split("-")
    return Wheel(file=file, name=name, version=version, python_tag=python_tag, size=int(size), sha256=sha256)


def describe_build(
    asked: WheelhouseRequest, tools: BuildTools, wheels: tuple[Wheel, ...], built: str
) -> WheelhouseManifest:
    """Return the manifest of what was built."""
    with_nccl, with_mpi = Carrier.NCCL in asked.carriers, Carrier.MPI in asked.carriers
    return WheelhouseManifest(
        built=built,
        node=tools.node,
        in_container=asked.in_container,
        framework=asked.package,
        horovod=HOROVOD,
        carriers=asked.carriers,
        python=tools.python,
        python_tag=tools.python_tag,
        machine=tools.machine,
        glibc=tools.glibc,
        compiler=tools.compiler,
        cuda=tools.cuda.version if tools.cuda and with_nccl else "",
        nccl=tools.nccl.version if tools.nccl and with_nccl else "",
        mpi=tools.mpi.version if tools.mpi and with_mpi else "",
        wheels=wheels,
    )
