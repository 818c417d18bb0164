"""What a cluster's template is missing, as far as vCenter knows it: nothing is booted, nothing is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.placement.resolve import find_source
from vsphere_ml.core.rules.template_facts import template_facts
from vsphere_ml.flows.cluster.plan import look

if TYPE_CHECKING:
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.ports.events import Listener
    from vsphere_ml.core.ports.vcenter import Clock, VCenter
    from vsphere_ml.core.rules.template_facts import TemplateFact


def check_template(spec: ClusterSpec, vcenter: VCenter, *, events: Listener, clock: Clock) -> tuple[TemplateFact, ...]:
    """Return what is known of the template. Raises NotPossible `site.not-found` where there is none of that name."""
    inventory = look(spec, vcenter, notify=events, clock=clock, why="first", devices=False)
    return template_facts(find_source(spec, inventory), spec)
