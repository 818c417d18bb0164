"""The manifest of a wheelhouse: its wheels, and what Horovod in it was built against."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import GuestError
from vsphere_ml.core.tools.horovod import HOROVOD, Carrier
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from vsphere_ml.guest.wheelhouse.build import WheelhouseRequest
    from vsphere_ml.guest.wheelhouse.tools import BuildTools

SCHEMA = "vsml.wheelhouse/1"
FILE = "manifest.json"
# PEP 427: name, version, perhaps a build's number, then three tags. A path is none.
_LISTED = re.compile(
    r"(?P<size>\d+) (?P<file>(?P<name>[\w.]+)-(?P<version>[\w.!+]+)(-\d\w*)?-(?P<tag>[\w.]+)-[\w.]+-[\w.]+\.whl)",
    re.ASCII,
)


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


def read_wheels(node: str, printed: str) -> tuple[Wheel, ...]:
    """Return the wheels that `list_wheels` printed, two lines each; GuestError where a node printed something else."""
    lines = printed.removesuffix("\n").split("\n")
    if len(lines) % 2:
        raise _unexpected_line(node, lines[-1])
    return tuple(_wheel(node, sha256.strip(), about) for sha256, about in zip(lines[::2], lines[1::2], strict=True))


def _wheel(node: str, sha256: str, about: str) -> Wheel:
    found = _LISTED.fullmatch(about)
    if found is None:
        raise _unexpected_line(node, about)
    return Wheel(
        file=found["file"],
        name=found["name"],
        version=found["version"],
        python_tag=found["tag"],
        size=int(found["size"]),
        sha256=sha256,
    )


def _unexpected_line(node: str, line: str) -> GuestError:
    reason = f"{line[:80]!r} is no size and file name of a wheel"
    hint = "the log of the guest has what it printed"
    return GuestError(reason=reason, code="guest.unexpected-output", target=node, hint=hint)


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
