"""The RoCE interface: address, MTU, lossless traffic, and the GID that NCCL is to use."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from vsphere_ml.core.model.guest import Step, StepNeed
from vsphere_ml.core.tools.roce import MTUS
from vsphere_ml.guest.playbooks.fields import FieldError
from vsphere_ml.guest.steps.network import rdma
from vsphere_ml.guest.steps.system.content import Content
from vsphere_ml.guest.templates import render
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from vsphere_ml.core.model.guest import CommandAnswer, GuestFacts, Shell

_PRIORITIES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class NetplanRoce(Step):
    """Address and MTU of the fast NIC by netplan. The address is the node's own; without one it asks DHCP."""

    KIND: ClassVar[str] = "netplan_roce"

    mtu: int = 9000
    prefix: int = 24

    def __post_init__(self) -> None:
        if self.mtu not in MTUS:
            raise FieldError("mtu", f"expected {MTUS[0]} to {MTUS[-1]}")
        if not 1 <= self.prefix <= 32:  # noqa: PLR2004
            raise FieldError("prefix", "expected 1 to 32")

    @property
    def title(self) -> str:
        return "RoCE interface"

    def probes(self, facts: GuestFacts) -> Mapping[str, str]:
        return _of_each(facts, self._probes)

    def _probes(self, facts: GuestFacts) -> Mapping[str, str]:
        asked = {"interface": rdma.interface(facts), "address": rdma.addresses(facts)}
        return ({"netplan": self._content(facts).probe} if _has_own_file(facts) else {}) | asked

    def drift(self, seen: Mapping[str, CommandAnswer], facts: GuestFacts) -> str | None:
        return _first_drift(facts, seen, self._drift)

    def _drift(self, seen: Mapping[str, CommandAnswer], facts: GuestFacts) -> str | None:
        if not seen["interface"].text:
            number = f" number {facts.roce_number}" if facts.roce_number > 1 else ""
            return f"there is no RoCE interface{number}" + (f" with MAC {facts.roce_mac}" if facts.roce_mac else "")
        if _has_own_file(facts) and (missing := self._content(facts).drift(seen["netplan"])):
            return missing
        return self.wrong(rdma.link(seen["address"]), facts)

    def apply(self, shell: Shell, facts: GuestFacts) -> StepNeed:
        for nic in filter(_has_own_file, rdma.each(facts)):
            self._content(nic).put(shell)
        shell.run("netplan generate && netplan apply")
        # DHCP and the link need a moment; what is still missing then is reported by the second look.
        for nic in rdma.each(facts):
            ready = f'ip -4 -o addr show dev "$({rdma.interface(nic)})" | grep -q inet'
            shell.run(f"i=0; until {ready}; do i=$((i + 1)); test $i -le 30 || break; sleep 1; done")
        return StepNeed.NOTHING

    def wrong(self, link: rdma.RdmaLink, facts: GuestFacts) -> str | None:
        """Return in words what is not as wanted of the interface."""
        if link.mtu != self.mtu:
            return f"{link.name or 'the interface'} has MTU {link.mtu or 'unknown'}, not {self.mtu}"
        wanted = self._address(facts)
        if wanted is None:
            return None if link.addresses else f"{link.name} has no IPv4 address"
        return None if wanted in link.addresses else f"{link.name} has no address {wanted}"

    def _address(self, facts: GuestFacts) -> str | None:
        address = rdma.own_address(facts)
        return address if address is None or "/" in address else f"{address}/{self.prefix}"

    def _content(self, facts: GuestFacts) -> Content:
        values = {
            "name": f"vsml-roce{_suffix(facts)}",
            "mac": (facts.roce_mac or "").lower(),
            "address": self._address(facts),
            "mtu": self.mtu,
        }
        text = render.render(render.shipped_template("netplan-roce.yaml"), values, "netplan-roce.yaml")
        # netplan warns about files that others can read.
        return Content(path=f"/etc/netplan/90-vsml-roce{_suffix(facts)}.yaml", text=text, mode=0o600)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoceQos(Step):
    """Lossless RoCE on a NIC that the guest has whole: trust DSCP, pause one priority, mark congestion.

    mlnx_qos forgets at reboot, so a unit sets it at every boot. A virtual function has no such settings: its traffic
    goes by those of the host's port (`pfctx`, `pfcrx`, `trust_state` of nmlx5_core). Linux, mlx5/core/en_dcbnl.c, gives
    DCB operations only to a function with `vport_group_manager`, which is the physical one. In every guest the GID
    index is put on record.
    """

    KIND: ClassVar[str] = "roce_qos"

    priority: int = 3
    ecn: bool = True  # needs a driver that shows `ecn` beside the interface's settings

    def __post_init__(self) -> None:
        if not 0 <= self.priority < _PRIORITIES:
            raise FieldError("priority", "expected 0 to 7")

    @property
    def title(self) -> str:
        return "RoCE quality of service"

    def probes(self, facts: GuestFacts) -> Mapping[str, str]:
        of_port = _of_each(facts, self._probes) if _is_physical_function(facts) else {}
        return {**of_port, "gids": rdma.gids(facts), "record": f"cat {rdma.RECORD}"}

    def _probes(self, facts: GuestFacts) -> Mapping[str, str]:
        nic = f'nic="$({rdma.interface(facts)})"'
        ecn = f'cat "/sys/class/net/$nic/ecn/roce_np/enable/{self.priority}" "/sys/class/net/$nic/ecn/roce_rp/enable/{self.priority}"'  # noqa: E501
        return {
            "script": self._script(facts).probe,
            "unit": self._unit(facts).probe,
            "enabled": f"systemctl is-enabled {_unit_name(facts)}",
            "qos": f'{nic}; mlnx_qos -i "$nic"',
            "ecn": f"{nic}; {ecn}",
        }

    def drift(self, seen: Mapping[str, CommandAnswer], facts: GuestFacts) -> str | None:
        drift = _first_drift(facts, seen, self._drift) if _is_physical_function(facts) else None
        return drift or _find_record_drift(seen, facts)

    def _drift(self, seen: Mapping[str, CommandAnswer], facts: GuestFacts) -> str | None:
        for name, content in (("script", self._script(facts)), ("unit", self._unit(facts))):
            if missing := content.drift(seen[name]):
                return missing
        if not seen["enabled"].ok:
            return f"{_unit_name(facts)} does not start at boot"
        return self._unset(seen)

    def apply(self, shell: Shell, facts: GuestFacts) -> StepNeed:
        for nic in rdma.each(facts) if _is_physical_function(facts) else ():
            self._script(nic).put(shell)
            self._unit(nic).put(shell)
            unit = _unit_name(nic)
            shell.run(f"systemctl daemon-reload && systemctl enable {unit} && systemctl restart {unit}")
        gid = rdma.best(shell.ask({"gids": rdma.gids(facts)})["gids"], facts)
        if gid is not None:
            shell.write(rdma.RECORD, gid.record)
        return StepNeed.NOTHING

    def _unset(self, seen: Mapping[str, CommandAnswer]) -> str | None:
        qos = seen["qos"].out
        if "trust state: dscp" not in qos.lower():
            return "the NIC does not trust DSCP"
        enabled = next((line.split()[1:] for line in qos.splitlines() if line.split()[:1] == ["enabled"]), [])
        wanted = ["1" if at == self.priority else "0" for at in range(_PRIORITIES)]
        if enabled != wanted:
            return f"priority flow control is not on for priority {self.priority} alone"
        if not self.ecn:
            return None
        return None if seen["ecn"].out.split() == ["1", "1"] else "congestion marking (ECN) is not on"

    def _script(self, facts: GuestFacts) -> Content:
        values = {
            "interface": rdma.interface(facts),
            "pfc": ",".join("1" if at == self.priority else "0" for at in range(_PRIORITIES)),
            "priority": self.priority,
            "ecn": self.ecn,
        }
        text = render.render(render.shipped_template("roce-qos.sh"), values, "roce-qos.sh")
        return Content(path=_script_path(facts), text=text, mode=0o755)

    def _unit(self, facts: GuestFacts) -> Content:
        values = {"script": _script_path(facts)}
        text = render.render(render.shipped_template("roce-qos.service"), values, "roce-qos.service")
        return Content(path=f"/etc/systemd/system/{_unit_name(facts)}", text=text)


def _is_physical_function(facts: GuestFacts) -> bool:
    """Return whether the guest has the NIC's port to itself, and so its settings of DCB."""
    return facts.nic.spec.only_physical


def _has_own_file(facts: GuestFacts) -> bool:
    """Return whether netplan can match one NIC; without a MAC the first one's file is for all by driver."""
    return facts.roce_number == 1 or bool(facts.roce_mac)


def _suffix(facts: GuestFacts) -> str:
    """Return what the files of a NIC after the first have in their names."""
    return f"-{facts.roce_number}" if facts.roce_number > 1 else ""


def _script_path(facts: GuestFacts) -> str:
    return f"/usr/local/sbin/vsml-roce-qos{_suffix(facts)}"


def _unit_name(facts: GuestFacts) -> str:
    return f"vsml-roce-qos{_suffix(facts)}.service"


def _of_each(facts: GuestFacts, ask: Callable[[GuestFacts], Mapping[str, str]]) -> dict[str, str]:
    """Return what is asked about each fast NIC; the questions about those after the first have their number."""
    return {f"{name}{_suffix(nic)}": snippet for nic in rdma.each(facts) for name, snippet in ask(nic).items()}


def _first_drift(
    facts: GuestFacts,
    seen: Mapping[str, CommandAnswer],
    judge: Callable[[Mapping[str, CommandAnswer], GuestFacts], str | None],
) -> str | None:
    """Return what is missing on the first fast NIC with something missing."""
    for nic in rdma.each(facts):
        end = _suffix(nic)
        mine = {name.removesuffix(end): answer for name, answer in seen.items() if name.endswith(end)} if end else seen
        if missing := judge(mine, nic):
            return missing
    return None


def _find_record_drift(seen: Mapping[str, CommandAnswer], facts: GuestFacts) -> str | None:
    gid = rdma.best(seen["gids"], facts)
    if gid is None:
        return "there is no GID of RoCE v2 with an IPv4 address"
    return None if seen["record"].out == gid.record else f"{rdma.RECORD} does not name GID {gid.index} of {gid.device}"
