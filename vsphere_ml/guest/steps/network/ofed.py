"""The RDMA stack: DOCA-OFED by apt, or MLNX_OFED by its own installer."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from vsphere_ml.core.model.guest import Step, StepNeed
from vsphere_ml.guest.playbooks.fields import FieldError, FileSource, check_checksum, check_pattern
from vsphere_ml.guest.steps.system.artifact import CACHE, fetch_artifact
from vsphere_ml.guest.steps.system.packages import PACKAGE, missing_packages, packages_question, unfinished_install
from vsphere_ml.guest.steps.system.shell import install, install_build_tools, q, with_proxy
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.core.model.guest import CommandAnswer, GuestFacts, Shell


# OFED's programs answer also where its modules were never built, or where the kernel's own are still loaded; then
# nvidia-peermem finds no ib_register_peer_memory_client ("Invalid argument", nv_peer_memory issues 28 and 84).
_RDMA_CORE = ("rdma-core", "ibverbs-providers", "ibverbs-utils")  # the library of vmw_pvrdma is in ibverbs-providers
_MODULE = {
    "module file": "modinfo -F filename mlx5_core",
    "module": "modinfo -F srcversion mlx5_core",
    "loaded module": "cat /sys/module/mlx5_core/srcversion",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ofed(Step):
    """OFED from an apt repository (`package`), or from MLNX_OFED's archive (`source`). Firmware is never flashed.

    A guest whose fast NIC is a PVRDMA adapter has no ConnectX function: the kernel's vmw_pvrdma and rdma-core serve it.
    """

    KIND: ClassVar[str] = "ofed"

    package: str = ""
    source: FileSource = FileSource("")
    version: str = ""  # what `ofed_info -s` must contain
    sha256: str = ""
    add_kernel_support: bool = False

    def __post_init__(self) -> None:
        if bool(self.package) == bool(self.source):
            raise FieldError("package", "expected one of `package` and `source`")
        check_checksum("sha256", self.source, self.sha256)
        if self.package:
            check_pattern("package", self.package, PACKAGE, "a package")
        elif not self.source.endswith((".tgz", ".tar.gz")):
            raise FieldError("source", "expected MLNX_OFED's .tgz archive")

    @property
    def title(self) -> str:
        return f"OFED {self.version}".strip()

    def probes(self, facts: GuestFacts) -> Mapping[str, str]:
        if facts.nic.spec.paravirtual:
            return {"driver": "modinfo -n vmw_pvrdma", "package": packages_question(_RDMA_CORE)}
        package = {"package": packages_question([self.package])} if self.package else {}
        return {"version": "ofed_info -s"} | package | _MODULE

    def drift(self, seen: Mapping[str, CommandAnswer], facts: GuestFacts) -> str | None:
        if facts.nic.spec.paravirtual:
            return _missing_for_pvrdma(seen)
        if not seen["version"].ok:
            return "no OFED is installed"
        if "package" in seen and (half := unfinished_install(self.package, seen["package"])):
            return half
        there = seen["version"].text.rstrip(":")
        return f"OFED is {there}, not {self.version}" if self.version not in there else _wrong_module(seen)

    def apply(self, shell: Shell, facts: GuestFacts) -> StepNeed:
        if facts.nic.spec.paravirtual:
            install(shell, list(_RDMA_CORE), facts)
            shell.run("modprobe vmw_pvrdma")
            return StepNeed.NOTHING
        install_build_tools(shell, facts)
        if self.package:
            # The minus keeps apt from taking the firmware updater along.
            install(shell, [self.package, "mlnx-fw-updater-"], facts)
        else:
            archive = fetch_artifact(self.source, shell, facts, self.sha256)
            shell.run(with_proxy(self._installer(archive), facts), timeout_s=7200)
        # What was installed before there were headers is built now.
        shell.run("if command -v dkms >/dev/null; then dkms autoinstall; fi", timeout_s=3600)
        shell.run("test ! -x /etc/init.d/openibd || /etc/init.d/openibd restart")
        return StepNeed.REBOOT if _is_another(shell.ask(_MODULE)) else StepNeed.NOTHING

    def _installer(self, archive: str) -> str:
        folder = f"{CACHE}/ofed"
        options = "--without-fw-update --force" + (" --add-kernel-support" if self.add_kernel_support else "")
        unpack = f"rm -rf {folder} && mkdir -p {folder} && tar -xzf {q(archive)} -C {folder} --strip-components=1"
        return f"{unpack} && {folder}/mlnxofedinstall {options}"


def _missing_for_pvrdma(seen: Mapping[str, CommandAnswer]) -> str | None:
    if not seen["driver"].ok:
        return "the running kernel has no vmw_pvrdma (Ubuntu: linux-modules-extra of the kernel's version)"
    missing = missing_packages(_RDMA_CORE, seen["package"])
    return f"not installed: {', '.join(missing)}" if missing else None


def _wrong_module(seen: Mapping[str, CommandAnswer]) -> str | None:
    """Say what is wrong with the driver of ConnectX, by the answers to `_MODULE`."""
    file = seen["module file"]
    # The kernel's own modules are under kernel/, those of DKMS under updates/ (dkms.conf, DEST_MODULE_LOCATION).
    if not file.ok or "/kernel/" in file.text:
        return "mlx5_core is the kernel's own: OFED's was not built for the running kernel"
    return "the mlx5_core that is loaded is not the one that OFED installed" if _is_another(seen) else None


def _is_another(seen: Mapping[str, CommandAnswer]) -> bool:
    """Return whether another mlx5_core is loaded than the one that is installed; one that is not loaded is no other."""
    loaded = seen["loaded module"].text
    return bool(loaded) and loaded != seen["module"].text
