"""What flow tests share: a quiet run of each command on a fake site."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.flows.cluster import destroy as destroying
from vsphere_ml.flows.cluster import provision as provisioning
from vsphere_ml.flows.cluster.executor import ApplyLimits
from vsphere_ml.flows.cluster.provision import ProvisionTask
from vsphere_ml.flows.consent import Consent
from vsphere_ml.flows.run_context import RunContext

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fakes.site import FakeVCenter
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.plan.plan import Plan
    from vsphere_ml.core.ports.events import Event
    from vsphere_ml.flows.cluster.proposal import GuestConfig
    from vsphere_ml.flows.cluster.report import Report
    from vsphere_ml.flows.cluster.saved import SavedPlan


def yes(_plan: Plan) -> bool:
    return True


def no(_plan: Plan) -> bool:
    return False


class Told(list["Event"]):
    """A listener that remembers."""

    def __call__(self, event: Event, /) -> None:
        self.append(event)


def provision(
    spec: ClusterSpec,
    site: FakeVCenter,
    *,
    approve: Callable[[Plan], bool] = yes,
    event: Told | None = None,
    parallel: int = 16,
    allow_downtime: bool = False,
    allow_delete: bool = False,
    confirmed: bool = True,
    dry_run: bool = False,
    saved: SavedPlan | None = None,
    given: GuestConfig | None = None,
    show: Callable[[Plan], None] | None = None,
    rolling: int = 0,
) -> Report:
    return provisioning.provision(
        RunContext(spec, site, Told() if event is None else event, site.clock),
        approve=lambda proposal: approve(proposal.plan),
        given=given,
        show=None if show is None else lambda proposal: show(proposal.plan),
        task=ProvisionTask(
            rate=ApplyLimits(parallel=parallel),
            consent=Consent(downtime=allow_downtime, deletion=allow_delete, confirmed=confirmed),
            dry_run=dry_run,
            saved=saved,
            rolling=rolling,
        ),
    )


def destroy(
    spec: ClusterSpec, site: FakeVCenter, *, approve: Callable[[Plan], bool] = yes, only: tuple[str, ...] = ()
) -> Report:
    return destroying.destroy(RunContext(spec, site, Told(), site.clock), approve=approve, only=only)
