"""`vsml bench published`: what others have published."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from vsphere_ml.cli.options import command
from vsphere_ml.cli.terminal import Answer, Terminal

if TYPE_CHECKING:
    from vsphere_ml.bench.predict.published import PublishedResult


class _PublishedData(TypedDict):
    """Published results, and what nobody has published."""

    published: tuple[PublishedResult, ...]
    unpublished: tuple[str, ...]


@command
def list_published(_terminal: Terminal) -> Answer[_PublishedData]:
    """List published figures with their conditions and sources, to stand beside one's own.

    Hosts, versions and years differ, so none of them is a mark to beat.

    Example: `vsml bench published`
    """
    from vsphere_ml.bench.predict.published import PUBLISHED, UNPUBLISHED
    from vsphere_ml.cli.views.bench import published as view

    return Answer(text=view.text(PUBLISHED, UNPUBLISHED), data={"published": PUBLISHED, "unpublished": UNPUBLISHED})
