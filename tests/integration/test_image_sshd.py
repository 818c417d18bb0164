"""The image's settings of OpenSSH, read by the machine's own sshd and ssh, with keys as Kubernetes mounts a Secret."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.integration import sshd
from tests.unit.kubernetes.image.trees import INCLUDE_SSH, INCLUDE_SSHD, PASSWD, SET_ENV, USER
from vsphere_ml.kubernetes.image.containerfile import make_client_config, make_server_config
from vsphere_ml.kubernetes.image.variants import ROOT, UID, SshdVariant

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.lab, pytest.mark.skipif(sshd.missing() is not None, reason=str(sshd.missing()))]
# Both have a network of their own, since the ports are fixed, and the folders that an image has.
WORKER = """\
set -e
cd "$1" && home=$2 uid=$3 && shift 3
ip link set lo up
mount -t tmpfs tmpfs /run && mkdir /run/sshd
mount -t tmpfs tmpfs /etc/ssh && cp -r ssh/. /etc/ssh/
mount --bind passwd /etc/passwd
[ "$home" = /root ] || { mount -t tmpfs tmpfs /home && mkdir "$home" && cp .sshd_config "$home"; }
[ "$home" != /root ] || mount -t tmpfs -o mode=700 tmpfs /root
chown "$uid" "$home" && mkdir "$home/.ssh"
mount --bind keys "$home/.ssh" && mount -o remount,bind,ro "$home/.ssh"
as="setpriv --reuid=$uid --regid=$uid --clear-groups env -i HOME=$home PATH=/usr/bin:/bin"
$as "$@" &
for _ in 1 2 3 4 5 6 7 8 9 10; do
    $as ssh localhost 'echo "reached $(id -u) $PATH"' 2>ssh.err && break || sleep 0.5
done
cat ssh.err >&2
kill $!
"""


def make_keys(folder: Path, mode: int) -> None:
    """Lay down a Secret's volume: a folder with the mode of /tmp, and links to root's files in it."""
    data = folder / "..2026_11_28"
    data.mkdir(parents=True)
    key = data / "id_rsa"
    subprocess.run(["ssh-keygen", "-q", "-t", "ecdsa", "-b", "521", "-N", "", "-f", str(key)], check=True)
    (data / "authorized_keys").write_text((data / "id_rsa.pub").read_text())
    folder.chmod(0o1777)
    (folder / "..data").symlink_to(data.name)
    for name in ("id_rsa", "id_rsa.pub", "authorized_keys"):
        (data / name).chmod(mode)
        (folder / name).symlink_to(f"..data/{name}")


@pytest.mark.parametrize(("variant", "uid", "mode"), [(ROOT, 0, 0o600), (USER, UID, 0o644)])
def test_a_worker_is_reached_by_the_job_s_key_alone(variant: SshdVariant, uid: int, mode: int, tmp_path: Path) -> None:
    make_keys(tmp_path / "keys", mode)
    own = "ssh/sshd_config.d/vsml.conf" if variant.is_root else ".sshd_config"
    files = {
        "passwd": PASSWD + "sshd:x:105:65534::/run/sshd:/usr/sbin/nologin\n",
        "ssh/ssh_config": INCLUDE_SSH,
        "ssh/sshd_config": INCLUDE_SSHD,
        "ssh/ssh_config.d/vsml.conf": make_client_config(variant),
        own: make_server_config(variant) + SET_ENV,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == 0 and "pytest" in folder.name:
            folder.chmod(0o755)
    space = ["unshare", "--mount", "--net", "--propagation", "private"]
    command = [*space, "sh", "-c", WORKER, "worker", str(tmp_path), variant.home, str(uid), *variant.command]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.split() == ["reached", str(uid), "/usr/local/mpi/bin:/usr/bin"], done.stderr
