"""The words that options of an export take. Nothing is imported here: the command line reads it at its start."""

from __future__ import annotations

from enum import StrEnum


class Part(StrEnum):
    """The parts of an export, in the order in which they are applied."""

    VM_CLASS = "vm-class"
    CLUSTER = "cluster"
    NAMESPACES = "namespaces"
    NETWORK_OPERATOR = "network-operator"
    NIC_POLICY = "nic-policy"
    GPU_OPERATOR = "gpu-operator"
    MPI_JOB = "mpijob"


class Supervisor(StrEnum):
    """How the Supervisor reads a VM class: from 8.0 U2 on by `configSpec`, before by `hardware.devices`."""

    BEFORE_8_0_U2 = "8.0u1"
    SINCE_8_0_U2 = "8.0u2"
