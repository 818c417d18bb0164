"""`vsml check`: is the file right? Needs no vCenter."""

from __future__ import annotations

from vsphere_ml.cli.options import DEFAULT_FILE, ClusterFile, Output, command
from vsphere_ml.cli.terminal import Answer, Terminal


@command
def check(terminal: Terminal, file: ClusterFile = DEFAULT_FILE) -> Answer:
    """Validate a cluster file without a vCenter, and show the nodes it describes.

    Every mistake is reported at once, with its line; so is every rule of `vsml rules` that the file alone breaks. The
    playbooks it names are read, too.

    Example: `vsml check cluster.toml`
    """
    from vsphere_ml.cli.views.cluster import nodes
    from vsphere_ml.cli.views.layout.envelope import plain
    from vsphere_ml.cli.views.site import rules
    from vsphere_ml.cli.wiring import guest_wiring
    from vsphere_ml.config.load import load
    from vsphere_ml.core.rules import check as judge

    spec = load(file)
    terminal.chat(f"read {file}")
    if spec.guest.playbooks:
        guest_wiring.playbooks(spec)
    breaches = judge.of_file(spec)
    if terminal.settings.output is not Output.JSON:
        return Answer(text=nodes.text(spec, rules.broken(breaches)))
    return Answer(data={**plain(spec), "rules": rules.broken_data(breaches)})
