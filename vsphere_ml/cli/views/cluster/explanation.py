"""Why each node sits where it does, and what every other host did not have or had less of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group

from vsphere_ml.cli.views.cluster.changes import list_names
from vsphere_ml.cli.views.layout.text import line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from vsphere_ml.core.placement.explain import Explanation


def text(explanations: Sequence[Explanation]) -> RenderableType:
    """Return a paragraph a node; hosts that lost for the same reason share a line."""
    return Group(
        line(("placement of each node, explained", "bold")),
        *(each for one in explanations for each in _explain_node(one)),
    )


def _explain_node(one: Explanation) -> Iterator[RenderableType]:
    yield line(("   ", ""), (one.node, "bold"), f" on {one.host}: {one.why}")
    if one.cost:
        yield line(f"      GPU and NIC: {one.locality}; {one.cost}")
    alike: dict[tuple[bool, str], list[str]] = {}
    for loser in one.losers:
        alike.setdefault((loser.fits, loser.verdict), []).append(loser.host)
    for (fits, verdict), hosts in alike.items():
        yield line(
            ("      fits, but ", "yellow") if fits else ("      cannot: ", "red"), f"{list_names(hosts)}: {verdict}"
        )
