"""Writes a Containerfile and the files beside it: any base with MPI and apt, made ready for mpi-operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.kubernetes.export.mpi_job import HOST_FILE
from vsphere_ml.kubernetes.image.variants import ROOT, UID, MpiName, SshdVariant
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

CONTAINERFILE = "Containerfile"
SSH, SSHD, ENTRYPOINT = "ssh.conf", "sshd.conf", "entrypoint.sh"
MADE_BY = "# Made by `vsml k8s image`"
# What ssh sessions, by which MPI starts its daemons, need of the base's own environment.
VARIABLES = ("PATH", "LD_LIBRARY_PATH", "OPAL_PREFIX")
_PACKAGES = "openssh-client openssh-server"
_SET_ENVIRONMENT = """\
RUN set --; for name in {names}; do \\
        eval "value=\\${{$name:-}}"; [ -z "$value" ] || set -- "$@" "$name=$value"; \\
    done; echo "SetEnv $*" >>{file}
"""
_RESOLVE = f"""\
#!/bin/sh
{MADE_BY}: Hydra wants the workers' names at once, and a cluster's DNS has them a little later.
resolve() {{
    pause=1
    until getent hosts "$1" >/dev/null; do
        [ "$pause" -le 64 ] || {{ echo "entrypoint.sh: $1 has no address" >&2; return 1; }}
        sleep "$pause"
        pause=$((pause * 2))
    done
}}
if [ "${{K_MPI_JOB_ROLE:-}}" = launcher ]; then
    for host in $(hostname) $(cut -d: -f1 {HOST_FILE}); do
        resolve "$host" || exit 1
    done
fi
exec "$@"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSpec:
    """What an image is to be."""

    base: str  # with MPI, Python and what trains; Debian or Ubuntu
    variant: SshdVariant = ROOT
    mpi: MpiName = MpiName.OPENMPI


def make_image_files(spec: ImageSpec) -> dict[str, str]:
    """Return the Containerfile and what it copies, by file name. The same image is for launcher and workers.

    No private key is in it: the job's own key is the host key, too, as in mpi-operator's image for users.
    """
    files = {
        CONTAINERFILE: _make_containerfile(spec),
        SSH: make_client_config(spec.variant),
        SSHD: make_server_config(spec.variant),
    }
    return files | ({} if spec.mpi is MpiName.OPENMPI else {ENTRYPOINT: _RESOLVE})


def make_client_config(variant: SshdVariant) -> str:
    """Return ssh's settings: host keys are the job's, and its folder of keys is read-only."""
    lines = ("StrictHostKeyChecking no", "UserKnownHostsFile /dev/null", "LogLevel ERROR", f"Port {variant.port}")
    return "\n".join((MADE_BY, "Host *", *(f"    {line}" for line in lines), ""))


def make_server_config(variant: SshdVariant) -> str:
    """Return sshd's settings; a Secret's folder looks as if anybody could write into it."""
    own = () if variant.is_root else (f"PidFile {variant.home}/sshd.pid",)
    lines = (f"Port {variant.port}", f"HostKey {variant.keys}/id_rsa", "StrictModes no", *own)
    return "\n".join((MADE_BY, *lines, ""))


def make_job_fields(variant: SshdVariant) -> Mapping[str, str]:
    """Return what an MPIJob with this image has to say beside the image's name, by field."""
    if variant.is_root:
        return {"spec.sshAuthMountPath": variant.keys}
    return {
        "spec.sshAuthMountPath": variant.keys,
        "Worker: command": " ".join(variant.command),
        "Worker: readinessProbe.tcpSocket.port": str(variant.port),
        "Launcher and Worker: securityContext.runAsUser": str(UID),
    }


def _make_containerfile(spec: ImageSpec) -> str:
    variant = spec.variant
    fields = "".join(f"#   {name}: {value}\n" for name, value in make_job_fields(variant).items())
    head = f"{MADE_BY}, for mpi-operator v0.8.2. An MPIJob with this image says:\n{fields}"
    return f"{head}FROM {spec.base}\nUSER root\n{_make_packages(variant)}{_make_copies(variant)}{_make_end(spec)}"


def _make_packages(variant: SshdVariant) -> str:
    """Return the step that brings ssh and sshd, without the host keys that Debian's package makes."""
    user = "" if variant.is_root else f" \\\n    && useradd --create-home --uid {UID} {variant.user}"
    return (
        "RUN apt-get update \\\n"
        f"    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends {_PACKAGES} \\\n"
        "    && rm -rf /var/lib/apt/lists/* /etc/ssh/ssh_host_*_key /etc/ssh/ssh_host_*_key.pub \\\n"
        f"    && mkdir -p /run/sshd{user}\n"
    )


def _make_copies(variant: SshdVariant) -> str:
    server = "/etc/ssh/sshd_config.d/vsml.conf" if variant.is_root else variant.sshd_config
    copies = f"COPY {SSH} /etc/ssh/ssh_config.d/vsml.conf\nCOPY {SSHD} {server}\n"
    return copies + _SET_ENVIRONMENT.format(names=" ".join(VARIABLES), file=server)


def _make_end(spec: ImageSpec) -> str:
    entry = (
        ""
        if spec.mpi is MpiName.OPENMPI
        else f'COPY {ENTRYPOINT} /{ENTRYPOINT}\nRUN chmod 755 /{ENTRYPOINT}\nENTRYPOINT ["/{ENTRYPOINT}"]\n'
    )
    return entry + ("" if spec.variant.is_root else f"USER {UID}\nWORKDIR {spec.variant.home}\n")
