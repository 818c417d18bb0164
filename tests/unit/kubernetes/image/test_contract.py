"""An image that is right breaks no rule; each rule finds the image that breaks it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.kubernetes.image.trees import USER, image_of
from vsphere_ml.core.diagnostics import Severity
from vsphere_ml.kubernetes.image.contract import RULES, check_images, contract_error
from vsphere_ml.kubernetes.image.file_tree import FileEntry, FileKind
from vsphere_ml.kubernetes.image.variants import ROOT, SshdVariant

DOCUMENT = Path(__file__).parents[4] / "docs" / "reference" / "kubernetes.md"
SSHD, SSH = "etc/ssh/sshd_config.d/vsml.conf", "etc/ssh/ssh_config.d/vsml.conf"
OWN = "home/mpiuser/.sshd_config"
ORTED = "opt/hpcx/ompi/bin/orted"
PRTED, HYDRA = "opt/hpcx/ompi/bin/prted", "opt/hpcx/ompi/bin/hydra_pmi_proxy"
PROGRAM = FileEntry(kind=FileKind.FILE)


@pytest.mark.parametrize("variant", [ROOT, USER])
def test_what_our_containerfile_makes_breaks_no_rule(variant: SshdVariant) -> None:
    assert check_images([image_of(variant)], variant) == ()


BROKEN = [  # variant, file, its text replaced or the file gone, rule
    (ROOT, "usr/sbin/sshd", None, "image-ssh"),
    (ROOT, "usr/bin/ssh", None, "image-ssh"),
    (ROOT, "run/sshd", None, "image-run-sshd"),
    (ROOT, SSHD, ("HostKey /root/.ssh/id_rsa", ""), "image-host-key"),
    (ROOT, SSHD, ("HostKey /root/.ssh/id_rsa", "HostKey /etc/ssh/none"), "image-host-key"),
    (USER, OWN, ("HostKey", "#HostKey"), "image-host-key"),
    (ROOT, SSHD, ("StrictModes no", ""), "image-strict-modes"),
    (USER, OWN, ("StrictModes no", "StrictModes yes"), "image-strict-modes"),
    (ROOT, SSH, ("StrictHostKeyChecking no", ""), "image-ssh-client"),
    (ROOT, SSH, ("UserKnownHostsFile /dev/null", ""), "image-ssh-client"),
    (ROOT, "etc/ssh/ssh_config", ("Include", "#"), "image-ssh-client"),
    (ROOT, SSH, ("Port 22", "Port 2222"), "image-port"),
    (USER, SSH, ("Port 2222", ""), "image-port"),
    (USER, "etc/passwd", ("mpiuser", "other"), "image-user"),
    (USER, "etc/passwd", ("10001:10001", "0:0"), "image-user"),
    (USER, OWN, ("PidFile /home/mpiuser/sshd.pid", ""), "image-pid-file"),
    (ROOT, ORTED, None, "image-mpi"),
    (ROOT, SSHD, ("PATH=/usr/local/mpi/bin:", "PATH="), "image-daemon-path"),
    (ROOT, SSHD, ("SetEnv", "#"), "image-daemon-path"),
]


@pytest.mark.parametrize(("variant", "path", "change", "rule"), BROKEN)
def test_a_broken_image_breaks_its_rule(
    variant: SshdVariant, path: str, change: tuple[str, str] | None, rule: str
) -> None:
    image = image_of(variant)
    if change is None:
        del image.tree.entries[path]
    else:
        before = image.tree.entries[path]
        image.tree.entries[path] = replace(before, text=before.text.replace(*change))
    assert {each.code for each in check_images([image], variant)} == {rule}


@pytest.mark.parametrize(
    ("paths", "rules"),
    [
        ((ORTED, PRTED), {"image-several-mpis", "image-open-mpi-5"}),
        ((PRTED,), {"image-open-mpi-5"}),
        ((HYDRA,), {"image-entrypoint"}),
    ],
)
def test_mpis_are_told_by_their_daemons(paths: tuple[str, ...], rules: set[str]) -> None:
    image = image_of(configured=True)
    del image.tree.entries[ORTED]
    image.tree.entries.update(dict.fromkeys(paths, PROGRAM))
    found = check_images([image], ROOT)
    assert {each.code for each in found} == rules
    assert {each.severity for each in found} == {Severity.WARNING}
    assert contract_error(found) is None


def test_an_entrypoint_that_reads_the_host_file_is_taken() -> None:
    image = image_of(configured=True, entrypoint=("/entrypoint.sh",))
    del image.tree.entries[ORTED]
    image.tree.entries |= {HYDRA: PROGRAM, "entrypoint.sh": replace(PROGRAM, text="cut /etc/mpi/hostfile")}
    assert check_images([image], ROOT) == ()


def test_host_keys_of_the_image_itself_are_taken_of_root() -> None:
    image = image_of()
    image.tree.entries[SSHD] = replace(PROGRAM, text=image.tree.entries[SSHD].text.replace("HostKey", "#"))
    image.tree.entries["etc/ssh/ssh_host_ed25519_key"] = PROGRAM
    assert check_images([image], ROOT) == ()


def test_launcher_and_workers_need_the_same_mpi() -> None:
    other = replace(image_of(), source="worker.tar")
    assert check_images([image_of(), other], ROOT) == ()
    other.tree.entries[PRTED] = other.tree.entries.pop(ORTED)
    found = check_images([image_of(), other], ROOT)
    assert {each.code for each in found if each.severity is Severity.ERROR} == {"image-same-mpi"}
    error = contract_error(found)
    assert error is not None
    assert (error.code, error.target, error.status) == ("kubernetes.image-invalid", "worker.tar", 2)


def test_the_document_has_every_rule() -> None:
    text = DOCUMENT.read_text()
    assert [rule.id for rule in RULES if f"`{rule.id}`" not in text] == []
    assert "`image-same-mpi`" in text
