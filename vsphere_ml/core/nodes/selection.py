"""The nodes that a command is to work on, by the names a person gave."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.nearest import nearest_name

if TYPE_CHECKING:
    from collections.abc import Collection

    from vsphere_ml.core.model.spec import ClusterSpec


def check_names(spec: ClusterSpec, names: Collection[str]) -> None:
    """Raise ConfigError `usage` when the file has no node of one of these names."""
    known = [node.name for node in spec.nodes]
    unknown = sorted(set(names) - set(known))
    if not unknown:
        return
    close = nearest_name(unknown[0], known)
    raise ConfigError(
        f"the cluster file has no node `{unknown[0]}`",
        code="usage",
        target=unknown[0],
        hint=(f"did you mean `{close}`? " if close else "") + f"its nodes are {', '.join(known)}",
    )


def select_nodes(spec: ClusterSpec, names: Collection[str]) -> ClusterSpec:
    """Return the spec of these nodes only, or of all when there are no names.

    The others are left as they are, and so are VMs whose nodes left the file. Raises ConfigError `usage` for a name
    that no node has.
    """
    check_names(spec, names)
    return spec.only_named(names) if names else spec
