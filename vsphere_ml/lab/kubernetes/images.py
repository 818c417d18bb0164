"""The container images of lab nodes: the root of lab guests, what they train with, and the sshd that MPI wants.

No registry is behind them: a node has these and no others, each by a name of its own.
"""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import NotPossible
from vsphere_ml.lab import mpich, runtime
from vsphere_ml.lab.guests import hub, image

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

# Each MPI's folder in the runtime, and the environment with the Horovod that was built over it.
_MPI = {**dict.fromkeys(runtime.OPEN_MPI, "venv"), mpich.FOLDER: mpich.VENV}
NAMES = {mpi: f"vsml-lab/horovod:{mpi}" for mpi in _MPI}
# sshd of a user, as mpi-operator's own images have it (build/base, v0.8.2); the number is that of vsml's images.
NON_ROOT = "vsml-lab/horovod:non-root"
_USER, _NUMBER, _PORT, _HOME = "mpiuser", 10001, 2222, "/home/mpiuser"
_SYSTEM = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# As mpi-operator's own images have it (build/base/Dockerfile, v0.8.2): host keys are nobody's, and the job's key lies
# in a Secret, whose files belong to somebody else.
_CLIENT = "Host *\n    StrictHostKeyChecking no\n    UserKnownHostsFile /dev/null\n    LogLevel ERROR\n"
_SERVER = "StrictModes no\nSetEnv {variables}\n"


def make_images(home: Path, say: Callable[[str], None]) -> dict[str, dict[str, object]]:
    """Return each image by its name, as lab nodes read it, with what it has of its own laid down in `home`.

    NotPossible `lab.no-guests`, `lab.no-runtime` or `lab.build-failed` where its parts cannot be made.
    """
    root = image.make_image(image.CLOUD, say) / image.ROOT
    made = mpich.make_mpich(say)
    images: dict[str, dict[str, object]] = {}
    for mpi, name in NAMES.items():
        variables = _variables(mpi)
        _lay(home / mpi, variables)
        images[name] = {
            "layers": [str(home / mpi), str(root)],
            "mounts": {runtime.IN_GUESTS: str(made)},
            "env": variables,
        }
    variables = _variables("openmpi-5")
    _lay_user(home / "non-root", root, variables)
    layers = [str(home / each) for each in ("non-root", "openmpi-5")]
    images[NON_ROOT] = {**images[NAMES["openmpi-5"]], "layers": [*layers, str(root)]}
    return images


def _lay_user(layer: Path, root: Path, variables: Mapping[str, str]) -> None:
    """Lay down what makes an image one of a user's."""
    entry = f"{_USER}:x:{_NUMBER}:{_NUMBER}::{_HOME}:/bin/sh\n"
    own = f"Port {_PORT}\nPidFile {_HOME}/sshd.pid\nHostKey {_HOME}/.ssh/id_rsa\n"
    texts = {
        "etc/passwd": (root / "etc" / "passwd").read_text() + entry,
        "etc/ssh/ssh_config.d/vsml-lab.conf": f"{_CLIENT}    Port {_PORT}\n",
        f"{_HOME[1:]}/.sshd_config": own + _SERVER.format(variables=_pairs(variables)),
    }
    _write(layer, texts)
    os.chown(layer / _HOME[1:], _NUMBER, _NUMBER)


def _variables(mpi: str) -> dict[str, str]:
    at = f"{runtime.IN_GUESTS}/{mpi}"
    return {
        "PATH": f"{at}/bin:{runtime.IN_GUESTS}/{_MPI[mpi]}/bin:{_SYSTEM}",
        "LD_LIBRARY_PATH": f"{at}/lib",
        **({"OPAL_PREFIX": at} if mpi in runtime.OPEN_MPI else {}),
    }


def _lay(layer: Path, variables: Mapping[str, str]) -> None:
    """Lay down an image's uppermost layer."""
    texts = {
        "etc/ssh/ssh_config.d/vsml-lab.conf": _CLIENT,
        "etc/ssh/sshd_config.d/vsml-lab.conf": _SERVER.format(variables=_pairs(variables)),
        "etc/resolv.conf": "",  # the nodes write what DNS would answer into /etc/hosts
    }
    _write(layer, texts)
    for folder in ("run/sshd", runtime.IN_GUESTS.lstrip("/")):
        (layer / folder).mkdir(parents=True, exist_ok=True)
    _make_host_key(layer / "etc" / "ssh" / "ssh_host_ed25519_key")


def _pairs(variables: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in variables.items())


def _write(layer: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        (layer / name).parent.mkdir(parents=True, exist_ok=True)
        (layer / name).write_text(text)


def _make_host_key(file: Path) -> None:
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=hub.environment())  # noqa: S603 - fixed words
    if done.returncode:
        raise NotPossible(
            "the host key of lab containers could not be made",
            code="lab.build-failed",
            target=str(file),
            details=tuple(done.stderr.splitlines()),
        )
