"""Which advanced settings of a VM come from the cluster file: the VM itself remembers them, in a setting of its own.

Without it a key that left the file would look like one that vSphere, or a person, has set. VMs made before there
was such a record have none, and get it with the next change of their settings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Not below `guestinfo.`: a guest can write there.
RECORD_KEY = "vsml.extra_config"


def format_record(keys: Iterable[str]) -> str:
    """Return the record of these keys, as the VM keeps it."""
    return " ".join(quote(key, safe="") for key in sorted(keys))


def left_behind(seen: Mapping[str, str], wanted: Iterable[str]) -> tuple[str, ...]:
    """Return the keys that a VM has from an earlier cluster file and nobody wants any more, as the VM spells them."""
    remaining = {key.casefold() for key in wanted}
    ours = {unquote(each).casefold() for each in seen.get(RECORD_KEY, "").split()}
    return tuple(key for key, value in seen.items() if value and key.casefold() in ours - remaining)
