"""The Containerfile and its files: their words, and what this machine's own OpenSSH and shell say of them."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.unit.kubernetes.image.trees import USER
from vsphere_ml.kubernetes.image.containerfile import ENTRYPOINT, SSH, SSHD, ImageSpec, make_image_files
from vsphere_ml.kubernetes.image.variants import ROOT, MpiName, SshdVariant

if TYPE_CHECKING:
    from pathlib import Path

    from tests.golden import Golden

BASE = "nvcr.io/nvidia/tensorflow:23.03-tf2-py3"


@pytest.mark.parametrize(("variant", "mpi"), [(ROOT, MpiName.OPENMPI), (USER, MpiName.MPICH)])
def test_what_is_written(variant: SshdVariant, mpi: MpiName, golden: Golden) -> None:
    files = make_image_files(ImageSpec(base=BASE, variant=variant, mpi=mpi))
    golden("".join(f"=== {name}\n{text}" for name, text in files.items()))


@pytest.mark.skipif(shutil.which("ssh") is None, reason="needs the Debian package openssh-client")
@pytest.mark.parametrize("variant", [ROOT, USER])
def test_ssh_reads_its_settings_as_they_are_meant(variant: SshdVariant, tmp_path: Path) -> None:
    (tmp_path / SSH).write_text(make_image_files(ImageSpec(base=BASE, variant=variant))[SSH])
    done = subprocess.run(
        ["ssh", "-G", "-F", str(tmp_path / SSH), "worker-0"], capture_output=True, text=True, check=True
    )
    settings = dict(line.partition(" ")[::2] for line in done.stdout.splitlines())
    assert settings["port"] == str(variant.port)
    assert settings["stricthostkeychecking"] in {"no", "false"}
    assert settings["userknownhostsfile"] == "/dev/null"


def test_the_step_that_keeps_the_base_s_variables_is_one_line_of_them(tmp_path: Path) -> None:
    text = make_image_files(ImageSpec(base=BASE))["Containerfile"]
    step = text[text.index("RUN set --") :].removeprefix("RUN ").replace("\\\n", "")
    step = step.replace("/etc/ssh/sshd_config.d/vsml.conf", str(tmp_path / SSHD))
    env = {"PATH": "/usr/local/mpi/bin:/usr/bin:/bin", "OPAL_PREFIX": "/opt/hpcx/ompi", "OTHER": "x"}
    subprocess.run(["/bin/sh", "-c", step], env=env, check=True)
    assert (tmp_path / SSHD).read_text() == f"SetEnv PATH={env['PATH']} OPAL_PREFIX=/opt/hpcx/ompi\n"


@pytest.mark.parametrize(("role", "looked_up"), [("launcher", ["own", "a", "b"]), ("worker", [])])
def test_an_entrypoint_waits_for_every_name_in_the_launcher(role: str, looked_up: list[str], tmp_path: Path) -> None:
    (tmp_path / "hostfile").write_text("a:1\nb:1\n")
    (tmp_path / "getent").write_text('#!/bin/sh\necho "$2" >>looked; [ -e "$2" ] || { touch "$2"; exit 2; }\n')
    for name, text in {"hostname": "echo own", "sleep": ":"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
    for name in ("getent", "hostname", "sleep"):
        (tmp_path / name).chmod(0o755)
    script = make_image_files(ImageSpec(base=BASE, mpi=MpiName.MPICH))[ENTRYPOINT]
    (tmp_path / ENTRYPOINT).write_text(script.replace("/etc/mpi/hostfile", "hostfile"))
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "K_MPI_JOB_ROLE": role}
    done = subprocess.run(
        ["/bin/sh", ENTRYPOINT, "echo", "began"], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout == "began\n"
    seen = (tmp_path / "looked").read_text().split() if looked_up else []
    assert seen == [name for each in looked_up for name in (each, each)]
