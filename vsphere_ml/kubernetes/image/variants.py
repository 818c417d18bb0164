"""The two ways in which sshd runs in a worker: as root on its own port, or as a user on one that needs no privilege."""

from __future__ import annotations

from enum import StrEnum

from vsphere_ml.lazy_dataclass import dataclass

USER, UID = "mpiuser", 10001  # above those that base images have
ROOT_PORT, USER_PORT = 22, 2222


class MpiName(StrEnum):
    """What a base image brings, as `mpiImplementation` of an MPIJob names it, in lower case."""

    OPENMPI = "openmpi"
    MPICH = "mpich"
    INTEL = "intel"


@dataclass(frozen=True, slots=True, kw_only=True)
class SshdVariant:
    """Who runs sshd, where its files are, and what the job must say for that."""

    user: str
    home: str
    port: int
    sshd_config: str  # of its own where sshd is started so
    command: tuple[str, ...]  # of a worker

    @property
    def keys(self) -> str:
        """Where the job's keys are mounted."""
        return f"{self.home}/.ssh"

    @property
    def is_root(self) -> bool:
        return self.user == "root"


ROOT = SshdVariant(
    user="root",
    home="/root",
    port=ROOT_PORT,
    sshd_config="/etc/ssh/sshd_config",
    command=("/usr/sbin/sshd", "-De"),
)
_HOME = f"/home/{USER}"
AS_USER = SshdVariant(
    user=USER,
    home=_HOME,
    port=USER_PORT,
    sshd_config=f"{_HOME}/.sshd_config",
    command=("/usr/sbin/sshd", "-De", "-f", f"{_HOME}/.sshd_config"),
)
