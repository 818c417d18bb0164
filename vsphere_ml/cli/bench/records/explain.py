"""`vsml bench explain`: what holds a benchmark up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.cli.bench.records.record import Records
from vsphere_ml.cli.options import command
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from vsphere_ml.cli.views.bench.explain import ExplainData


@command
def explain(_terminal: Terminal, records: Records) -> Answer["ExplainData"]:
    """Hold a record's figures against what the link allows, and name what to change first.

    Only what the record can show is named: a wrong path, a straggler, input or CPUs that training waits for, a slow
    link, a collective that leaves the link idle, an efficiency below what the network explains.

    Example: `vsml bench explain bench/2026-01-31`
    """
    from vsphere_ml.bench.analysis.explain import explain as remarks_on
    from vsphere_ml.bench.analysis.study import study
    from vsphere_ml.bench.records import store
    from vsphere_ml.cli.views.bench import explain as view

    seen = study(store.read(*records))
    diagnostics = remarks_on(seen)
    return Answer(text=view.text(seen, diagnostics), data=view.data(seen, diagnostics))
