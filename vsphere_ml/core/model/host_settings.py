"""PCIe Address Translation Services (ATS) of ESXi hosts, not VMFS's atomic test-and-set, as facts.

GPUDirect RDMA inside VMs wants ATS in three places: the ESXi kernel, the NIC's firmware, and the VM's own switches.
Three facts are kept apart for each setting: what is configured, what waits for a reboot, and what is in effect.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from vsphere_ml.core.model.inventory import HostRef

KERNEL_SETTING = "atsSupport"
KERNEL_OPTION = "VMkernel.Boot.atsSupport"
FIRMWARE_SETTING = "ATS_ENABLED"
SRIOV_SETTING = "SRIOV_EN"
FUNCTIONS_SETTING = "NUM_OF_VFS"
SHARED_DIRECT = "sharedDirect"
TRUE = "TRUE"


class SettingKind(StrEnum):
    """What of a host a setting belongs to."""

    KERNEL = "ESXi kernel"
    FIRMWARE = "NIC firmware"
    FIRMWARE_SRIOV = "NIC firmware, SR-IOV"
    GRAPHICS = "graphics"
    SRIOV = "SR-IOV"
    PASSTHROUGH = "passthrough"
    MIG = "MIG"
    DRIVER = "NIC driver"
    VMKNIC = "PVRDMA tag"
    FIREWALL = "firewall"


class AccessMethod(StrEnum):
    """Through what a setting is read and written."""

    ESXCLI = "esxcli over the vSphere API"
    OPTIONS = "the host's option manager"
    API = "vSphere API"
    HOST = "SSH on the host"
    GUEST = "SSH in the guest"
    NONE = "none"


class SettingState(StrEnum):
    """A setting in one word."""

    EFFECTIVE = "effective"
    PENDING = "pending reboot"
    NOT_CONFIGURED = "not configured"
    UNPROVEN = "configured, effect not known"
    UNKNOWN = "not known"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSetting:
    """One setting of a host as it was seen. None is unknown; `why` then says so."""

    part: SettingKind
    name: str  # as the tool that shows it calls it: atsSupport, ATS_ENABLED, …
    wanted: str
    on: str = ""  # the PCI address of the port, for a setting of one
    configured: str | None = None  # what the next boot brings
    effective: str | None = None  # what is in force now
    access: AccessMethod = AccessMethod.NONE
    device: str = ""  # what mlxconfig calls the port
    guest: str = ""  # the VM that the function is passed through to
    why: str = ""
    manual_steps: tuple[str, ...] = ()  # what a person can type on the host (or in the guest)
    at_once: bool = False  # what is written takes effect without a reboot
    read_only: bool = False  # vsml writes it not: a person types `by_hand`
    exact: bool = False  # more than what is wanted is not enough: a former value is to come back

    @property
    def is_configured(self) -> bool:
        """Whether the next boot brings what is wanted; what nobody could read is not taken for configured."""
        return self._meets(self.configured)

    @property
    def is_effective(self) -> bool:
        return self.is_configured and self._meets(self.effective)

    @property
    def is_pending(self) -> bool:
        return self.is_configured and self.effective is not None and not self._meets(self.effective)

    @property
    def state(self) -> SettingState:
        if self.configured is None:
            return SettingState.UNKNOWN
        if not self.is_configured:
            return SettingState.NOT_CONFIGURED
        if self.effective is None:
            return SettingState.UNPROVEN
        return SettingState.EFFECTIVE if self.is_effective else SettingState.PENDING

    @property
    def can_be_set(self) -> bool:
        """Whether vsml can write it: it could be read, so there is access."""
        return self.configured is not None and self.access is not AccessMethod.NONE and not self.read_only

    @property
    def key(self) -> str:
        """Return the setting's identity on its host, as records of former values have it."""
        return f"{self.part.name.lower()}:{self.on}" if self.on else self.part.name.lower()

    def _meets(self, value: str | None) -> bool:
        if value is None:
            return False
        counted = self.part is SettingKind.SRIOV or self.name == FUNCTIONS_SETTING
        if counted and not self.exact:  # so many virtual functions, or more
            return int(value) >= int(self.wanted)
        return value == self.wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class VmFact:
    """One of a VM's own switches for peer-to-peer traffic and MMIO, which `vsml provision` sets."""

    vm: str
    key: str
    wanted: str
    seen: str | None

    @property
    def ok(self) -> bool:
        return self.seen is not None and self.seen.casefold() == self.wanted.casefold()

    @property
    def words(self) -> str:
        """What is wrong with it, and what corrects it."""
        return f"{self.key} is {self.seen or 'not set'}, {self.wanted} wanted; `vsml provision` sets it"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """A host's settings as they were seen."""

    host: HostRef
    name: str
    facts: tuple[HostSetting, ...]
    vms: tuple[VmFact, ...] = ()

    @property
    def enabled(self) -> bool:
        """Whether every half is in effect: only then does the host do ATS for the cluster's VMs."""
        return bool(self.facts) and all(fact.is_effective for fact in self.facts) and all(vm.ok for vm in self.vms)

    @property
    def unmet(self) -> tuple[HostSetting, ...]:
        return tuple(fact for fact in self.facts if not fact.is_effective)
