"""A guest with all that Horovod's builds want, as it answers the probes."""

from __future__ import annotations

from tests.unit.guest.recorder import answer
from vsphere_ml.core.model.guest import CommandAnswer
from vsphere_ml.core.tools.horovod import FRAMEWORKS, Carrier, FrameworkName
from vsphere_ml.guest.wheelhouse.build import WheelhouseRequest

NVCC = "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 12.5, V12.5.82\n"
NCCL = "#define NCCL_MAJOR 2\n#define NCCL_MINOR 22\n#define NCCL_PATCH 3\n"
ANSWERS = {
    "python": answer("3.11.2 cp311 x86_64 2.36\npython3-dev\npython3-venv\n"),
    "g++": answer("12.2.0\n"),
    "make": answer("/usr/bin/make\n"),
    "cmake": answer("/usr/bin/cmake\n"),
    "cuda": answer(f"/usr/local/cuda-12.5\n{NVCC}"),
    "nccl": answer(f"/usr\n{NCCL}"),
    "mpi": answer("/opt/ompi/bin\nmpirun (Open MPI) 5.0.11\n"),
}
SILENT = CommandAnswer(1, "")
TENSORFLOW, PYTORCH = FRAMEWORKS[FrameworkName.TENSORFLOW], FRAMEWORKS[FrameworkName.PYTORCH]
ALL = tuple(Carrier)


def request(
    framework: FrameworkName = FrameworkName.TENSORFLOW, carriers: tuple[Carrier, ...] = ALL
) -> WheelhouseRequest:
    return WheelhouseRequest(framework=FRAMEWORKS[framework], package=FRAMEWORKS[framework].package, carriers=carriers)
