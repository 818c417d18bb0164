"""The runtime without containers: a Python environment of its own, from a wheelhouse or a package index."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from vsphere_ml.core.errors import GuestError
from vsphere_ml.core.hints import CommandLine
from vsphere_ml.core.model.guest import Step, StepNeed
from vsphere_ml.guest.playbooks.fields import (
    FieldError,
    WheelhouseSource,
    check_address,
    check_checksum,
    check_pattern,
)
from vsphere_ml.guest.steps.system.artifact import CACHE, fetch_artifact
from vsphere_ml.guest.steps.system.files import check_absolute
from vsphere_ml.guest.steps.system.shell import q, with_proxy, words
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.core.model.guest import CommandAnswer, GuestFacts, Shell

REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9.+!]+")
_WHEELS = f"{CACHE}/wheelhouse"
_INFO = re.compile(r"(?P<name>.+)-(?P<version>[^-]+)\.dist-info")


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonRuntime(Step):
    """A virtual environment with exact versions. `wheelhouse` has its wheels, instead of an index."""

    KIND: ClassVar[str] = "python_runtime"

    packages: tuple[str, ...]
    path: str = "/opt/vsml/runtime"
    python: str = "python3"
    wheelhouse: WheelhouseSource = WheelhouseSource("")
    wheelhouse_sha256: str = ""
    index: str = ""  # what pip is set up for

    def __post_init__(self) -> None:
        check_absolute("path", self.path)
        check_address("index", self.index)
        check_checksum("wheelhouse_sha256", self.wheelhouse, self.wheelhouse_sha256)
        if self.index and not self.index.startswith("https://"):
            raise FieldError("index", "is not https, and pip takes no other; give a `wheelhouse` where there is none")
        for package in self.packages:
            check_pattern("packages", package, REQUIREMENT, "a package with its version, such as horovod==0.28.1")
        if not self.packages:
            raise FieldError("packages", "is empty")
        if self.wheelhouse and self.index:
            raise FieldError("index", "contradicts `wheelhouse`; leave one of them out")
        if self.wheelhouse and not self.wheelhouse.is_archive:
            self._check_folder()

    def _check_folder(self) -> None:
        if self.wheelhouse.is_url or self.wheelhouse.is_datastore or self.wheelhouse.endswith((".zip", ".whl")):
            raise FieldError(
                "wheelhouse", "expected a .tar or .tar.gz file of wheels, or a folder of them on this machine"
            )
        if self.wheelhouse_sha256:
            raise FieldError("wheelhouse_sha256", "is of a file, and `wheelhouse` is a folder")

    @property
    def title(self) -> str:
        return f"Python runtime {self.path}"

    def probes(self, _facts: GuestFacts) -> Mapping[str, str]:
        # The names of the folders say what pip would take a second for.
        listed = f"ls -1 {q(self.path)}/lib/python3*/site-packages"
        return {"python": f"{q(self.path + '/bin/python')} -c ''", "packages": f"{listed} | grep '[.]dist-info$'"}

    def drift(self, seen: Mapping[str, CommandAnswer], _facts: GuestFacts) -> str | None:
        if not seen["python"].ok:
            return f"there is no Python environment in {self.path}"
        found = (_INFO.fullmatch(line) for line in seen["packages"].out.splitlines())
        there = {_normalize_name(each["name"]): each["version"] for each in found if each}
        wanted = (each.partition("==") for each in self.packages)
        missing = [f"{name} {version}" for name, _, version in wanted if there.get(_normalize_name(name)) != version]
        return f"{self.path} has no {', '.join(missing)}" if missing else None

    def apply(self, shell: Shell, facts: GuestFacts) -> StepNeed:
        shell.run(f"{q(self.python)} -m venv {q(self.path)}")
        pip = f"{q(self.path + '/bin/python')} -m pip install --disable-pip-version-check --no-compile"
        shell.run(with_proxy(f"{pip} {self._from(shell, facts)}{words(self.packages)}", facts), timeout_s=7200)
        return StepNeed.NOTHING

    def _from(self, shell: Shell, facts: GuestFacts) -> str:
        if self.wheelhouse:
            self._bring_wheels(shell, facts)
            return f"--no-index --find-links {_WHEELS} "
        return f"--index-url {q(self.index)} " if self.index else ""

    def _bring_wheels(self, shell: Shell, facts: GuestFacts) -> None:
        empty = f"rm -rf {_WHEELS} && mkdir -p {_WHEELS}"
        if self.wheelhouse.is_archive:
            archive = fetch_artifact(self.wheelhouse, shell, facts, self.wheelhouse_sha256)
            shell.run(f"{empty} && tar -xf {q(archive)} -C {_WHEELS}")
            # The wheels lie at the top of the archive, or in one folder.
            shell.run(f"find {_WHEELS} -mindepth 2 -name '*.whl' -exec mv -t {_WHEELS} {{}} +")
            return
        if not self.wheelhouse.wheels:
            why, hint = f"there are no wheels in {self.wheelhouse}", CommandLine("vsml runtime build --into DIR")
            raise GuestError(reason=why, code="guest.file-missing", target=facts.name, hint=hint)
        shell.run(empty)
        for wheel in self.wheelhouse.wheels:
            shell.put(wheel, f"{_WHEELS}/{wheel.name}")


def _normalize_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
