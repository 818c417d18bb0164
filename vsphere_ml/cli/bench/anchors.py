"""`vsml bench anchors`: what others have published."""

from __future__ import annotations

from vsphere_ml.cli.options import command
from vsphere_ml.cli.terminal import Answer, Terminal


@command
def anchors(_terminal: Terminal) -> Answer:
    """List published figures with their conditions and sources, to stand beside one's own.

    Hosts, versions and years differ, so none of them is a mark to beat.

    Example: `vsml bench anchors`
    """
    from vsphere_ml.bench.predict.published import ANCHORS, UNPUBLISHED
    from vsphere_ml.cli.views.bench import anchors as view

    data = {"anchors": list(ANCHORS), "unpublished": list(UNPUBLISHED)}
    return Answer(text=view.text(ANCHORS, UNPUBLISHED), data=data)
