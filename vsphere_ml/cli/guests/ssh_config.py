"""`vsml ssh-config`: the cluster's guests as OpenSSH's client knows hosts."""

from __future__ import annotations

from typing import TypedDict

from vsphere_ml.cli.options import DEFAULT_FILE, ClusterFile, OnlyNodes, Refresh, command
from vsphere_ml.cli.terminal import Answer, Terminal


class _SshHost(TypedDict):
    node: str
    address: str


class _SshConfigData(TypedDict):
    """The text for OpenSSH's client, and the hosts in it."""

    config: str
    hosts: list[_SshHost]


@command
def ssh_config(
    terminal: Terminal, file: ClusterFile = DEFAULT_FILE, *, only: OnlyNodes = None, refresh: Refresh = False
) -> Answer["_SshConfigData"]:
    """Print an ssh_config of the nodes, so that `ssh`, `scp`, `rsync` and editors enter them without vsml and vCenter.

    Each node is a host of its name, and of its name with the cluster's behind it, with the keys and the pinned host
    keys that vsml uses. vCenter is read only when an address is not known from an earlier run; print it anew after
    nodes were made again.

    Example: `vsml ssh-config > ~/.ssh/train.conf`, and `Include train.conf` as the first line of `~/.ssh/config`; then
    `ssh node-01`, or `rsync -a data/ node-01.train:data/`
    """
    from vsphere_ml.cli.guests.ssh import find_targets
    from vsphere_ml.cli.views.layout.verbatim import VerbatimText
    from vsphere_ml.cli.wiring.cluster_file import load
    from vsphere_ml.core.nodes.selection import select_nodes
    from vsphere_ml.ssh.openssh import config

    spec = load(file)
    names = [node.name for node in select_nodes(spec, only or ()).nodes]
    targets = find_targets(terminal, spec, names, refresh=refresh)
    text = "\n\n".join(config(name, (f"{name}.{spec.name}",), target) for name, target in targets.items())
    hosts: list[_SshHost] = [{"node": name, "address": target.host} for name, target in targets.items()]
    return Answer(text=VerbatimText(text), data={"config": text, "hosts": hosts})
