"""Why a training regime cannot be run on the nodes that there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.bench.model.engines import Needs
from vsphere_ml.bench.network.regimes import Regime
from vsphere_ml.core.errors import NotPossible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.bench.model.record import Configuration
    from vsphere_ml.bench.probe.survey import Surveyed


def check_regime(asked: Configuration, surveyed: Sequence[Surveyed]) -> None:
    """Raise NotPossible `bench.regime-nodes` for too few nodes, `bench.regime-runtime` where Horovod is missing."""
    regime = Regime(asked.options["regime"])
    least = max(2, int(asked.options.get("servers", "1")))
    if not regime.spec.local and asked.nodes < least:
        raise NotPossible(
            f"{regime.spec.title} is between nodes: it takes {least}, and there {'is' if asked.nodes == 1 else 'are'} "
            f"{asked.nodes}",
            code="bench.regime-nodes",
            target=regime.value,
            hint=f"--nodes {least}",
        )
    missing = [each.node for each in surveyed if regime.spec.needs is Needs.HOROVOD and not each.runtime]
    if missing:
        raise NotPossible(
            f"{regime.spec.title} is Horovod's all-reduce, and {', '.join(missing)} has no Python with it",
            code="bench.regime-runtime",
            target=regime.value,
            hint='`vsml configure` with the playbook "runtime"; or --regime sync, which needs numpy alone',
        )
