"""`vsml status`: what stands, and what drifted."""

from __future__ import annotations

from vsphere_ml.cli.options import DEFAULT_FILE, ClusterFile, DetailedExitcode, command
from vsphere_ml.cli.terminal import Answer, Terminal


@command
def status(
    terminal: Terminal, file: ClusterFile = DEFAULT_FILE, *, detailed_exitcode: DetailedExitcode = False
) -> Answer:
    """Show what stands of the cluster, what each node lacks, and where its GPU and NIC really are.

    Example: `vsml status cluster.toml`
    """
    from vsphere_ml.cli import exits, wiring
    from vsphere_ml.cli.views import status as view
    from vsphere_ml.cli.views.progress import following
    from vsphere_ml.config.load import load
    from vsphere_ml.flows.status import status as look

    spec = load(file)
    with wiring.vcenter(spec.vcenter, terminal) as vcenter, following(terminal.err) as tell:
        seen = look(spec, vcenter, tell=tell, clock=wiring.SystemClock())
    differs = exits.DIFFERENCES if detailed_exitcode and not seen.whole else 0
    return Answer(text=view.text(seen), data=view.data(seen), status=differs)
