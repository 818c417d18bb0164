"""NCCL's topology file: the host's PCIe tree from vCenter, the bus ids from the guest."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from vsphere_ml.core.model.guest import Step, StepNeed
from vsphere_ml.core.nodes.container import NAME
from vsphere_ml.core.report.nccl_topology import fill_bus_ids
from vsphere_ml.guest.playbooks.fields import check_pattern
from vsphere_ml.guest.steps.network import rdma
from vsphere_ml.guest.steps.system.content import block, block_probe
from vsphere_ml.guest.steps.system.files import read_existing
from vsphere_ml.guest.steps.system.shell import q
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vsphere_ml.core.model.guest import CommandAnswer, GuestFacts, Shell

# NCCL takes a line of nccl.conf as it is, up to its end.
_PATH = re.compile(r"/[A-Za-z0-9._/-]+")
_CONF, _MARK = "/etc/nccl.conf", "NCCL topology"


@dataclass(frozen=True, slots=True, kw_only=True)
class NcclTopology(Step):
    """Where the VM's GPUs and NIC sit on its host, for NCCL_TOPO_FILE."""

    KIND: ClassVar[str] = "nccl_topology"
    AFTER_REBOOT: ClassVar[bool] = True  # nvidia-smi answers once the driver is loaded

    path: str = "/etc/vsml/nccl-topology.xml"

    def __post_init__(self) -> None:
        check_pattern("path", self.path, _PATH, "an absolute path of letters, digits, `.`, `_` and `-`")

    @property
    def title(self) -> str:
        return "NCCL topology"

    def probes(self, facts: GuestFacts) -> Mapping[str, str]:
        # The file's content depends on the answers, so it is read as it is.
        return {**_topology_questions(facts), "file": f"cat {q(self.path)}", "conf": block_probe(_CONF, _MARK)}

    def drift(self, seen: Mapping[str, CommandAnswer], facts: GuestFacts) -> str | None:
        try:
            wanted = _text(seen, facts)
        except ValueError as error:
            return str(error)
        if seen["file"].out != wanted:
            return f"{self.path} is not as the host's PCIe tree has it"
        return None if seen["conf"].out == self._line else f"{_CONF} does not name {self.path}"

    def apply(self, shell: Shell, facts: GuestFacts) -> StepNeed:
        try:
            text = _text(shell.ask(_topology_questions(facts)), facts)
        except ValueError:
            return StepNeed.NOTHING  # what is missing is reported by the second look
        shell.write(self.path, text)
        mode, owner, old = read_existing(shell, _CONF, facts)
        shell.write(_CONF, block(old, _MARK, self._line), mode=mode, owner=owner)
        # The training container, where there is one, keeps the files that it was started with.
        shell.run(f"docker restart -t 0 {NAME} >/dev/null 2>&1 || :")
        return StepNeed.NOTHING

    @property
    def _line(self) -> str:
        return f"NCCL_TOPO_FILE={self.path}\n"


def _topology_questions(facts: GuestFacts) -> dict[str, str]:
    slots = (
        f'sed -n "s/^PCI_SLOT_NAME=//p" "/sys/class/net/$({rdma.interface(nic)})/device/uevent"'
        for nic in rdma.each(facts)
    )
    return {"gpus": "nvidia-smi --query-gpu=pci.bus_id --format=csv,noheader", "nic": "; ".join(slots)}


def _text(seen: Mapping[str, CommandAnswer], facts: GuestFacts) -> str:
    """Return the file; ValueError says why there is none."""
    if not seen["gpus"].ok:
        raise ValueError("nvidia-smi does not tell its GPUs")
    return fill_bus_ids(facts.nccl_topology, seen["gpus"].text.splitlines(), seen["nic"].text.split())
