"""How launchers and what ranks talk over are called, in options and in records."""

from __future__ import annotations

from enum import StrEnum


class LauncherName(StrEnum):
    """What starts the ranks."""

    HOROVODRUN = "horovodrun"
    MPIRUN = "mpirun"
    TORCHRUN = "torchrun"
    SSH = "ssh"


SOCKETS = "sockets"  # TCP sockets of a workload of ours, which no launcher knows of


class Backend(StrEnum):
    """What carries the collectives."""

    GLOO = "gloo"
    MPI = "mpi"
    NCCL = "nccl"
