"""Which ESXi has the kernel setting `atsSupport`, and on whose CPUs: the version table as data.

Source of the settings: William Lam's lists of ESXi's advanced and kernel settings by release
(github.com/lamw/esxi-advanced-and-kernel-settings). A host is asked for its setting; the table says what to expect and
why it is not there.
"""

from __future__ import annotations

from vsphere_ml.core.catalog.versions import numbers
from vsphere_ml.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class _AtsRelease:
    """What is known of `atsSupport` from one release on. None: the lists do not say."""

    since: tuple[int, ...]
    build: int = 0  # from this build of `since` on
    name: str
    present: bool
    default: bool | None = None
    option: bool | None = None  # as VMkernel.Boot.atsSupport in the option manager too


# Newest first; the first row that a host reaches is its own. Build 19482537 is 7.0 Update 3d (VMware KB 2143832).
RELEASES = (
    _AtsRelease(since=(8, 0), name="8.0 and later", present=True, default=True, option=True),
    _AtsRelease(since=(7, 0, 3), build=19482537, name="7.0 U3d and later", present=True, default=True, option=True),
    _AtsRelease(since=(7, 0, 3), name="7.0 U3 before U3d", present=True),
    _AtsRelease(since=(7, 0, 2), name="7.0 U2", present=True, default=False, option=False),
    _AtsRelease(since=(0,), name="before 7.0 U2", present=False, option=False),
    _AtsRelease(since=(), name="of a version that vCenter does not give", present=False),
)
_U2, _U3 = (7, 0, 2), (7, 0, 3)


def release(version: str, build: str = "") -> _AtsRelease:
    """Return the row of a host's version."""
    reached = numbers(version)
    number = int(build) if build.isdecimal() else 0
    return next(row for row in RELEASES if reached >= row.since and (number >= row.build or reached[:3] > row.since))


def refusal(version: str, build: str, cpu_vendor: str) -> str:
    """Return why a host cannot do ATS for VMs, in words; empty when nothing speaks against it."""
    if not numbers(version):
        return "vCenter does not give its ESXi version, so nobody knows whether it has the kernel setting atsSupport"
    if not release(version, build).present:
        return f"ESXi {version} has no kernel setting atsSupport; it came with 7.0 U2"
    if cpu_vendor == "amd" and _U2 <= numbers(version) < _U3:
        return f"ESXi {version} supports ATS with Intel CPUs only, and this host has AMD's"
    return ""


def version_warning(version: str, cpu_vendor: str) -> str:
    """Return what no document says of a host's CPU, in words; empty for what is documented."""
    if cpu_vendor == "intel":
        return ""
    who = "AMD CPUs" if cpu_vendor == "amd" else "CPUs that are not Intel's"
    return f"no document tells whether ESXi {version} supports ATS with {who}"
