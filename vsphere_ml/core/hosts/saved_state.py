"""What a run writes down on a host before it changes anything: in vCenter, where the next run finds it from anywhere.

A custom attribute may hold little, so the form is terse: `{"v":1,"by":CLUSTER,"boot":TIME,"in":1,"was":{KEY:VALUE}}`.
`boot` is the boot during which the last change was made: a host with another one has booted since. `in` says that we
have put the host into maintenance mode (or are about to); `was` has the values before our first change; `"for":"ready"`
is there when a plan made the host ready for nodes.
"""

from __future__ import annotations

import json
from dataclasses import field, replace
from typing import TYPE_CHECKING

from vsphere_ml.core import json_text
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION = 1
READY = "ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A host's record. `former` has, by `Fact.key`, what was configured before vsml changed it."""

    cluster: str
    boot: str  # boot time of the host when the last change was made
    maintenance: bool = False
    former: Mapping[str, str] = field(default_factory=dict)
    ready: bool = False  # written by a plan that makes hosts ready, not by enable-ats

    def text(self) -> str:
        fields = {
            "v": VERSION,
            "by": self.cluster,
            "boot": self.boot,
            "in": int(self.maintenance),
            "was": {**self.former},
            **({"for": READY} if self.ready else {}),
        }
        return json.dumps(fields, separators=(",", ":"))

    def with_former(self, values: Mapping[str, str]) -> Record:
        """Return the record with more former values; what was written down first stays."""
        return replace(self, former={**values, **self.former})


def parse(text: str) -> Record | None:
    """Return the record that an attribute holds; None when it holds none that this version can read."""
    try:
        fields = json_text.parse(text)
        if fields["v"] != VERSION:
            return None
        former = {str(key): str(value) for key, value in fields["was"].items()}
        return Record(
            cluster=str(fields["by"]),
            boot=str(fields["boot"]),
            maintenance=bool(fields["in"]),
            former=former,
            ready=fields.get("for") == READY,
        )
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
