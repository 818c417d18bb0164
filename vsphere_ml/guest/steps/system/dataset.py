"""Training data under the same path on every node."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from vsphere_ml.core.errors import GuestError
from vsphere_ml.core.model.guest import Step, StepNeed
from vsphere_ml.guest.playbooks.fields import FieldError, FileSource, check_checksum, check_pattern
from vsphere_ml.guest.steps.system.artifact import fetch_artifact
from vsphere_ml.guest.steps.system.files import Line
from vsphere_ml.guest.steps.system.shell import install, q
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.core.model.guest import CommandAnswer, GuestFacts, Shell

# What stands in /etc/fstab is not quoted: a blank there ends the field.
_PATH = re.compile(r"/[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*")
_EXPORT = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:]+\]):/([A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*)?")
_OPTIONS = re.compile(r"[A-Za-z0-9=._:,-]+")
_MEMBER = re.compile(r"([^/\n][^\n]*)?")
_ENDINGS = (".tar", ".tar.gz", ".tgz", ".zip")
MARK = ".vsml-dataset"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset(Step):
    """A folder of training data: mounted by NFS, unpacked from an archive, or there already and only checked."""

    KIND: ClassVar[str] = "dataset"

    path: str
    contains: str = ""
    nfs: str = ""
    options: str = "ro,hard,nofail"
    archive: FileSource = FileSource("")
    archive_sha256: str = ""

    def __post_init__(self) -> None:
        check_pattern("path", self.path, _PATH, "an absolute path of letters, digits, `.`, `_`, `-`")
        if {".", ".."} & {*self.path.split("/"), *self.contains.split("/")}:
            raise FieldError("path", "must not go by `.` or `..`")
        check_pattern("contains", self.contains, _MEMBER, "a path in the folder, such as Ebay_train.txt")
        if self.nfs:
            check_pattern("nfs", self.nfs, _EXPORT, "an NFS export such as nas.example.com:/datasets")
        check_pattern("options", self.options, _OPTIONS, "mount options such as ro,hard,nofail")
        check_checksum("archive_sha256", self.archive, self.archive_sha256)
        if self.nfs and self.archive:
            raise FieldError("archive", "contradicts `nfs`; leave one of them out")
        if self.archive and not self.archive.endswith(_ENDINGS):
            raise FieldError("archive", f"expected a file that ends in {', '.join(_ENDINGS)}")

    @property
    def title(self) -> str:
        return f"dataset {self.path}"

    @property
    def question(self) -> str:
        """The command that succeeds where the folder has what it must; a server that hangs does not hold it up."""
        return f"timeout -s KILL 20 ls -d {q(self._member)} >/dev/null"

    def probes(self, _facts: GuestFacts) -> Mapping[str, str]:
        asked = {"there": self.question}
        if self.nfs:
            asked |= {"source": f"findmnt -rn -o SOURCE --mountpoint {q(self.path)}", "boot": self._at_boot_probe}
        if self.archive:
            asked["mark"] = f"cat {q(f'{self.path}/{MARK}')}"
        return asked

    def drift(self, seen: Mapping[str, CommandAnswer], _facts: GuestFacts) -> str | None:
        if self.nfs and seen["source"].text != self.nfs:
            return f"{self.path} is not mounted from {self.nfs}"
        if self.nfs and not seen["boot"].ok:
            return f"{self.path} is not mounted at boot"
        if self.archive and seen["mark"].out != self._mark:
            return f"{self.archive.name} is not unpacked in {self.path}"
        return None if seen["there"].ok else f"there is no {self._member}"

    def apply(self, shell: Shell, facts: GuestFacts) -> StepNeed:
        if self.nfs:
            self._mount(shell, facts)
        elif self.archive:
            self._unpack(shell, facts)
        else:
            raise self._missing_error(facts)
        return StepNeed.NOTHING

    def _mount(self, shell: Shell, facts: GuestFacts) -> None:
        asked = {"client": "test -x /sbin/mount.nfs", "other": f"findmnt -rn -o SOURCE --mountpoint {q(self.path)}"}
        seen = shell.ask(asked)
        if seen["other"].text not in {"", self.nfs}:
            raise self._foreign_error(facts, f"{self.path} is mounted from {seen['other'].text}")
        if not seen["client"].ok:
            install(shell, ["nfs-common"], facts)
        self._at_boot.apply(shell, facts)
        shell.run(f"mkdir -p {q(self.path)} && {{ mountpoint -q {q(self.path)} || mount {q(self.path)}; }}")

    def _unpack(self, shell: Shell, facts: GuestFacts) -> None:
        there, mark, part = q(self.path), q(f"{self.path}/{MARK}"), q(f"{self.path}.part")
        foreign = f"ls -A {there} 2>/dev/null | grep -q . && ! test -e {mark}"
        if shell.ask({"foreign": foreign})["foreign"].ok:
            raise self._foreign_error(facts, f"{self.path} has files that vsml did not put there")
        archive = fetch_artifact(self.archive, shell, facts, self.archive_sha256)
        unpack = f"python3 -m zipfile -e {q(archive)} {part}"
        if not archive.endswith(".zip"):
            unpack = f"tar --no-same-owner -xf {q(archive)} -C {part}"
        shell.run(f"rm -rf {part} && mkdir -p {part} && {unpack} && chmod -R a+rX {part}", timeout_s=7200)
        shell.write(f"{self.path}.part/{MARK}", self._mark)
        # An older dataset of ours goes when the new one is whole; `rmdir` removes nothing that others put there.
        old = f"if test -e {mark}; then rm -rf {there}; elif test -e {there}; then rmdir {there}; fi"
        shell.run(f"{old} && mv {part} {there} && rm -f {q(archive)}", timeout_s=7200)

    @property
    def _member(self) -> str:
        return f"{self.path}/{self.contains}" if self.contains else self.path

    @property
    def _mark(self) -> str:
        return f"{self.archive.name} {self.archive_sha256 or '-'}\n"

    @property
    def _at_boot(self) -> Line:
        line = f"{self.nfs} {self.path} nfs {self.options} 0 0"
        return Line(path="/etc/fstab", line=line, match=rf"^\S+\s+{re.escape(self.path)}\s")

    @property
    def _at_boot_probe(self) -> str:
        return f"grep -Fxq -e {q(self._at_boot.line)} -- /etc/fstab"

    def _missing_error(self, facts: GuestFacts) -> GuestError:
        return GuestError(
            reason=f"{self._member} is not there, and the step says of no way to bring it",
            code="guest.dataset-missing",
            target=facts.name,
            hint="put it there, or give the step `nfs` or `archive`",
        )

    def _foreign_error(self, facts: GuestFacts, reason: str) -> GuestError:
        return GuestError(
            reason=reason,
            code="guest.dataset-exists",
            target=facts.name,
            hint="give the step another `path`, or leave `nfs` and `archive` out to take what is there",
        )
