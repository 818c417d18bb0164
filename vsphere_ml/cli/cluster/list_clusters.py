"""`vsml list`: all clusters that vsml made in a vCenter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.cli.options import SiteFile, SiteOptions, command
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from vsphere_ml.cli.views.cluster.clusters import ClusterListData


@command
def list_clusters(
    terminal: Terminal,
    file: SiteFile = None,
    *,
    site: SiteOptions,
) -> Answer["ClusterListData"]:
    """List all clusters that vsml made in a vCenter: their nodes, hosts and GPUs.

    Without a file: the vCenter that options or the environment name, else ./cluster.toml.

    Example: `vsml list --lab default`
    """
    from vsphere_ml.cli.views.cluster import clusters as view
    from vsphere_ml.cli.wiring import site_wiring
    from vsphere_ml.core.report.clusters import list_clusters as listed

    seen = site_wiring.read_named_site(file, site, terminal)
    clusters = listed(seen)
    return Answer(text=view.text(seen, clusters), data=view.data(seen, clusters))
