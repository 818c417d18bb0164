"""`vsml check`: is the file right? Needs no vCenter."""

from __future__ import annotations

from vsphere_ml.cli.options import DEFAULT_FILE, ClusterFile, command
from vsphere_ml.cli.terminal import Answer, Terminal


@command
def check(terminal: Terminal, file: ClusterFile = DEFAULT_FILE) -> Answer:
    """Validate a cluster file without a vCenter, and show the nodes it describes.

    Every mistake is reported at once, with its line; so is every rule of `vsml rules` that the file alone breaks. The
    playbooks it names are read, too.

    Example: `vsml check cluster.toml`
    """
    from vsphere_ml.cli import guest_wiring
    from vsphere_ml.cli.views import nodes, rules
    from vsphere_ml.cli.views.envelope import plain
    from vsphere_ml.config.load import load
    from vsphere_ml.core.legality import judge

    spec = load(file)
    terminal.chat(f"read {file}")
    if spec.guest.playbooks:
        guest_wiring.playbooks(spec)
    breaches = judge.of_file(spec)
    return Answer(
        text=nodes.text(spec, rules.broken(breaches)), data={**plain(spec), "rules": rules.broken_data(breaches)}
    )
