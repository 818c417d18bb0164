"""The RDMA stack: DOCA-OFED by apt, or MLNX_OFED by its own installer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from vsphere_ml.core.guest import Need
from vsphere_ml.guest.fields import SHA256, Source, Wrong, matching, pinned
from vsphere_ml.guest.steps.artifact import CACHE, bring
from vsphere_ml.guest.steps.packages import PACKAGE, installed, unfinished
from vsphere_ml.guest.steps.shell import install, online, q

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.core.guest import Answer, GuestFacts, Shell


@dataclass(frozen=True, slots=True, kw_only=True)
class Ofed:
    """OFED from an apt repository (`package`), or from MLNX_OFED's archive (`source`). Firmware is never flashed."""

    KIND: ClassVar[str] = "ofed"

    package: str = ""
    source: Source = Source("")  # noqa: RUF009 - immutable, as every str
    version: str = ""  # what `ofed_info -s` must contain
    sha256: str = ""
    add_kernel_support: bool = False

    def __post_init__(self) -> None:
        if bool(self.package) == bool(self.source):
            raise Wrong("package", "expected one of `package` and `source`")
        matching("sha256", self.sha256, SHA256, "a SHA-256 of 64 lower-case hexadecimal digits")
        pinned("sha256", self.source, self.sha256)
        if self.package:
            matching("package", self.package, PACKAGE, "a package")
        elif not self.source.endswith((".tgz", ".tar.gz")):
            raise Wrong("source", "expected MLNX_OFED's .tgz archive")

    @property
    def title(self) -> str:
        return f"OFED {self.version}".strip()

    def probes(self, _facts: GuestFacts) -> Mapping[str, str]:
        return {"version": "ofed_info -s"} | ({"package": installed([self.package])} if self.package else {})

    def lack(self, seen: Mapping[str, Answer], _facts: GuestFacts) -> str | None:
        if not seen["version"].ok:
            return "no OFED is installed"
        if "package" in seen and (half := unfinished(self.package, seen["package"])):
            return half
        there = seen["version"].text.rstrip(":")
        return None if self.version in there else f"OFED is {there}, not {self.version}"

    def apply(self, shell: Shell, facts: GuestFacts) -> Need:
        if self.package:
            # The minus keeps apt from taking the firmware updater along.
            install(shell, [self.package, "mlnx-fw-updater-"], facts)
        else:
            archive = bring(self.source, shell, facts, self.sha256)
            shell.run(online(self._installer(archive), facts), timeout_s=7200)
        shell.run("test ! -x /etc/init.d/openibd || /etc/init.d/openibd restart")
        return Need.NOTHING

    def _installer(self, archive: str) -> str:
        folder = f"{CACHE}/ofed"
        options = "--without-fw-update --force" + (" --add-kernel-support" if self.add_kernel_support else "")
        unpack = f"rm -rf {folder} && mkdir -p {folder} && tar -xzf {q(archive)} -C {folder} --strip-components=1"
        return f"{unpack} && {folder}/mlnxofedinstall {options}"
