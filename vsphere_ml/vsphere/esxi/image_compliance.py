"""Asks vSphere Lifecycle Manager which hosts differ from their cluster's image, by its last check; it is in REST alone.

By the vSphere Automation API, `GET /api/esx/settings/clusters/{cluster}/software/compliance` (ClusterCompliance), whose
`non_compliant_hosts` and `incompatible_hosts` are hosts' ids.
"""

from __future__ import annotations

from http.client import HTTPException
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vsphere_ml.vsphere.connection.session import Session

_PATH = "/api/esx/settings/clusters/{}/software/compliance"
_DIFFERENT = ("non_compliant_hosts", "incompatible_hosts")


def differing_hosts(session: Session, clusters: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return the ids of the hosts that differ, by cluster; a cluster of which nothing is known is left out.

    Nothing is known before the first check, before 7.0, and without VcIntegrity.lifecycleSoftwareSpecification.Read.
    """
    found: dict[str, frozenset[str]] = {}
    for cluster in clusters:
        try:
            answer = session.read_rest(_PATH.format(quote(cluster)))
        except (OSError, HTTPException, ValueError):
            continue
        if isinstance(answer, dict):
            lists = (answer.get(name) for name in _DIFFERENT)
            found[cluster] = frozenset(str(host) for each in lists if isinstance(each, list) for host in each)
    return found
