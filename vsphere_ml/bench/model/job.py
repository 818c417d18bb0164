"""One launch as a value: what is to run, on which nodes, in which order, and where its files lie in the guests."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING

from vsphere_ml.core.nodes.container import SHARED
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.bench.model.record import Configuration
    from vsphere_ml.core.model.guest import Peer

FOLDER = SHARED
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
MARK = "VSML_BENCH_RUN"  # the variable that every process of a launch carries
USER_MARK = "VSML_JOB_RUN"  # of a job of the user's, which no benchmark ends
STOP = "stop"  # the file by which a job is asked to come to its end
SCRIPT = "script"  # the folder of the user's own program
OPEN_MPI, MPICH = "Open MPI", "MPICH"


class RunIn(StrEnum):
    """Where ranks run: in the guests themselves, in the training container of each, or in the pods of an MPIJob."""

    GUEST = "guest"
    CONTAINER = "container"
    KUBERNETES = "kubernetes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What ranks are to run with, as asked for. Paths are those of where they run; empty is what is found there."""

    python: str = "/opt/vsml/runtime/bin/python"
    mpirun: str = ""
    mpi: str = OPEN_MPI  # of a pod's image; others are asked whose theirs is
    user: str = "root"
    within: RunIn = RunIn.GUEST
    ssh_port: int = 0  # of the container's sshd; 0: it has none
    all_reduce_perf: str = ""
    rdma_device: str = ""  # the only one to look at


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """What the guests run a job with. Paths are theirs, the same in each; in a container those of its image."""

    python: str = "/opt/vsml/runtime/bin/python"
    mpirun: str = ""  # an absolute path; empty where no MPI is installed
    mpi: str = OPEN_MPI  # whose it is
    mpi_version: tuple[int, ...] = ()
    user: str = "root"  # who goes from node to node by SSH
    home: str = "/root"
    within: RunIn = RunIn.GUEST
    ssh_port: int = 0  # of the container's sshd; 0: the guest's, which the mesh knows
    variables: Mapping[str, str] = field(default_factory=dict)  # the image's own, which its sshd hands to nobody

    @property
    def mpi_prefix(self) -> str:
        """Return where an MPI outside the system's own folders lies; empty otherwise."""
        prefix = self.mpirun.removesuffix("/bin/mpirun").removesuffix("/bin/mpiexec")
        return "" if prefix in {self.mpirun, "", "/usr", "/usr/local"} else prefix


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One launch. The launcher runs on the first node, whose first rank is rank 0."""

    run_id: str
    configuration: Configuration
    nodes: tuple[Peer, ...]
    slots: int  # ranks a node
    interface: str  # of the nodes' control traffic, and of TCP
    runtime: Runtime
    program: tuple[str, ...]  # with its arguments; a script of ours by its bare name
    limit_s: float
    least_nodes: int = 0  # elastic: the job goes on while so many are left; 0: it fails when one is lost
    variables: Mapping[str, str] = field(default_factory=dict)
    node_variables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # by node, what is not alike in all
    over_ucx: bool = False  # MPI carries the collectives by UCX over RDMA ports, and not over TCP
    mark: str = MARK
    root: str = FOLDER  # the folder of all runs
    work_folder: str = ""  # where ranks are started, each line of theirs with its rank; empty: as the launcher does it

    @property
    def ranks(self) -> int:
        return self.slots * len(self.nodes)

    @property
    def folder(self) -> str:
        return f"{self.root}/{self.run_id}"

    @property
    def command(self) -> tuple[str, ...]:
        """Return what each rank executes: it prints its place, and becomes the program."""
        python = self.runtime.python
        report = (python, f"{self.folder}/rank.py", "--folder", self.folder, "--interface", self.interface)
        own = ("--work-folder", self.work_folder) if self.work_folder else ()
        return (*report, *own, "--", *self.program)
