"""A cluster that stands on ESXi hosts in memory, and quiet runs of enable-ats on it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tests.fakes.esx import esx
from tests.fakes.hosts import FakeHosts
from tests.fakes.pictures import quad_8u3, r750xa
from tests.fakes.requirements import cluster
from tests.fakes.site import FakeVCenter
from tests.unit.flows.acting import provision
from vsphere_ml.core.hosts.host_plan import DisruptionPolicy
from vsphere_ml.flows.hosts.ats_hosts import HostsReading, Task
from vsphere_ml.flows.hosts.enable_ats import enable_ats
from vsphere_ml.flows.hosts.host_session import HostSession
from vsphere_ml.flows.run_context import RunContext

if TYPE_CHECKING:
    from tests.fakes.esx import FakeEsx
    from vsphere_ml.core.model.inventory import Inventory
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.ports.host_events import HostEvent
    from vsphere_ml.core.ports.vcenter import Guests
    from vsphere_ml.flows.hosts.enable_ats import AtsPlan, AtsReport

DOWNTIME = DisruptionPolicy(downtime=True)


@dataclass(slots=True)
class Rig:
    spec: ClusterSpec
    site: FakeVCenter
    hosts: FakeHosts
    guests: Guests | None = None
    shells: bool = True
    told: list[HostEvent] = field(default_factory=list)
    shown: list[AtsPlan] = field(default_factory=list)

    def run(
        self,
        *,
        leave: DisruptionPolicy = DOWNTIME,
        answer: bool = True,
        parallel: int = 1,
        vcenter: frozenset[str] = frozenset(),
        **task: object,
    ) -> AtsReport:
        def approve(plan: AtsPlan) -> bool:
            self.shown.append(plan)
            return answer

        session = HostSession(
            hosts=self.hosts,
            notify=self.told.append,
            shells=self.hosts if self.shells else None,
            guests=self.guests,
            leave=leave,
            parallel=parallel,
            vcenter=vcenter,
        )
        return enable_ats(
            HostsReading(
                RunContext(self.spec, self.site, lambda _event: None, self.site.clock),
                session,
                Task(**task),  # type: ignore[arg-type]
            ),
            approve=approve,
        )

    def esx(self, number: int) -> FakeEsx:
        return self.hosts.there[self.site.inventory.hosts[number].ref]

    def running(self) -> set[str]:
        return {vm.name for vm in self.site.inventory.vms if vm.powered_on}

    def done(self, host: str | None = None) -> list[str]:
        """Return the kinds of changes made, in order, on one host or on all."""
        return [type(each).__name__ for each in self.hosts.changes if host in {None, each.host_name}]

    @property
    def whole(self) -> bool:
        """Whether every host has every half in effect, serves, and holds nothing that a cut run would leave."""
        return all(_whole(machine) for machine in self.hosts.there.values()) and not self.hosts.resume


def _whole(machine: FakeEsx) -> bool:
    """Whether kernel, graphics and the ports that its nodes can be given are in effect, and the host serves."""
    ports = all(each.ats == [True, True] for each in machine.functions.values())
    kernel = machine.kernel == ["TRUE", "TRUE"]
    return kernel and ports and machine.graphics == ["sharedDirect", "sharedDirect"] and not machine.maintenance


def existing(nodes: int = 2, picture: Inventory | None = None, spec: ClusterSpec | None = None) -> Rig:
    """Return a cluster whose nodes run, one on each host, on hosts as they come from the factory."""
    spec = spec or cluster(nodes)
    site = FakeVCenter(picture or quad_8u3(hosts=nodes, taken=False))
    assert provision(spec, site).done
    # Whatever a test says of a host's ESXi, its nodes stand already.
    return Rig(spec, site, FakeHosts(site, {host.ref: esx(host) for host in site.inventory.hosts}))


def of_versions(*versions: tuple[str, str, str]) -> Rig:
    """Return a cluster with one host for each (version, build, CPU vendor), a node on every one."""
    picture = quad_8u3(hosts=len(versions), taken=False)
    hosts = tuple(
        replace(r750xa(number), version=version, build=build, cpu_vendor=vendor)
        for number, (version, build, vendor) in enumerate(versions, 1)
    )
    return existing(len(versions), replace(picture, hosts=hosts))
