"""How Horovod 0.28.1 is built, which has no wheels: its settings, and what newer frameworks want of its build.

The variables are those of Horovod's docs/install.rst. Against TensorFlow 2.19 and newer the build asks for headers of
XLA that TensorFlow does not ship; only a build for GPUs uses what is in them, so seven empty files in front of
TensorFlow's own are enough for CPUs. Headers of PyTorch 2.1 and newer want C++17, where Horovod asks for C++14.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection

HOROVOD = "horovod==0.28.1"
BUILD_PACKAGES = ("setuptools<82", "wheel", "packaging")  # what its build finds in the environment
STUBS = (
    "tensorflow/compiler/tf2xla/xla_op_kernel.h",
    "tensorflow/compiler/tf2xla/xla_op_registry.h",
    "tensorflow/compiler/xla/client/xla_builder.h",
    "tensorflow/compiler/xla/service/custom_call_target_registry.h",
    "tensorflow/compiler/xla/service/hlo.pb.h",
    "tensorflow/compiler/xla/shape.h",
    "tensorflow/compiler/xla/xla_data.pb.h",
)
CXX17 = """\
#!/bin/sh
for word; do
    shift
    case $word in -std=c++1[14] | -std=gnu++1[14]) word=-std=c++17 ;; esac
    set -- "$@" "$word"
done
exec g++ "$@"
"""


class Carrier(StrEnum):
    """What Horovod's collectives go by. NCCL needs one of the others, by which ranks find each other."""

    NCCL = "nccl"
    MPI = "mpi"
    GLOO = "gloo"


CONTROLLERS = frozenset({Carrier.MPI, Carrier.GLOO})


class FrameworkName(StrEnum):
    """A framework that Horovod is built against."""

    TENSORFLOW = "tensorflow"
    PYTORCH = "pytorch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """How a framework is installed for Horovod, and what it wants of Horovod's build."""

    name: FrameworkName
    package: str  # with its version, where none is asked for
    module: str  # of Horovod's
    needs: tuple[str, ...]  # what Horovod and vsml's workloads import beside it
    compiler: str = ""  # a program in place of g++


_NEEDS = ("cloudpickle", "packaging", "psutil", "pyyaml")
FRAMEWORKS = {
    each.name: each
    for each in (
        Framework(
            name=FrameworkName.TENSORFLOW, package="tensorflow==2.18.1", module="horovod.tensorflow", needs=_NEEDS
        ),
        Framework(
            name=FrameworkName.PYTORCH,
            package="torch==2.13.0",
            module="horovod.torch",
            needs=(*_NEEDS, "cffi", "numpy"),
            compiler=CXX17,
        ),
    )
}


def find_package(asked: str) -> tuple[Framework, str] | None:
    """Return the framework that a name or a package with its version means, and the package; None for neither."""
    name, _, version = asked.partition("==")
    for each in FRAMEWORKS.values():
        if asked == each.name:
            return each, each.package
        if version and name.startswith(each.package.partition("==")[0]):
            return each, asked
    return None


def build_settings(framework: FrameworkName, carriers: Collection[Carrier]) -> dict[str, str]:
    """Return the environment variables of a build; with NCCL, those that say where it and CUDA lie come on top."""
    others = [each for each in FrameworkName if each is not framework]
    return {
        f"HOROVOD_WITH_{framework.upper()}": "1",
        **{f"HOROVOD_WITHOUT_{each.upper()}": "1" for each in (*others, "mxnet")},
        **{_switch(each, carriers): "1" for each in (Carrier.GLOO, Carrier.MPI)},
        **({"HOROVOD_GPU_OPERATIONS": "NCCL"} if Carrier.NCCL in carriers else {}),
        "CMAKE_POLICY_VERSION_MINIMUM": "3.5",  # CMake 4 refuses what Gloo's CMake files say otherwise
        "LDFLAGS": "-Wl,-s",  # 1 MB in place of 17
    }


def _switch(carrier: Carrier, carriers: Collection[Carrier]) -> str:
    return f"HOROVOD_WITH{'' if carrier in carriers else 'OUT'}_{carrier.upper()}"
