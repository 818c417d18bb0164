"""The addresses at which a cluster's guests were last reached, so that going there again needs no look at the site."""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from vsphere_ml.core.bounded_file import read_bytes
from vsphere_ml.core.ports.vcenter import GuestPlace
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

LARGEST = 8 << 20  # bytes


@dataclass(frozen=True, slots=True)
class AddressCache:
    """A file of addresses by node. It can be had again: one that cannot be read or written counts as empty."""

    path: Path

    def places(self) -> Mapping[str, GuestPlace]:
        """Return where each node answered last."""
        try:
            document = json.loads(read_bytes(self.path, LARGEST))
        except (OSError, ValueError, RecursionError):
            return {}
        entries = document.items() if isinstance(document, dict) else ()
        return {
            name: GuestPlace(name=name, address=entry["address"], vm=entry["vm"])
            for name, entry in entries
            if isinstance(entry, dict) and isinstance(entry.get("address"), str) and isinstance(entry.get("vm"), str)
        }

    def remember(self, places: Sequence[GuestPlace]) -> None:
        """Note where these nodes answer."""
        known = self.places()
        new = [each for each in places if each.name and _entry(each) != _entry(known.get(each.name))]
        if new:
            self._edit({each.name: each for each in new}, ())

    def forget(self, names: Collection[str]) -> None:
        """Drop the addresses of nodes whose VM goes, or is made anew."""
        if set(names) & set(self.places()):
            self._edit({}, names)

    def _edit(self, new: Mapping[str, GuestPlace], gone: Collection[str]) -> None:
        try:
            with self._alone():
                # An address that is another node's now is nobody else's: the host key pinned for it is that node's.
                taken = {each.address for each in new.values()}
                before = self.places().items()
                known = {name: each for name, each in before if name not in gone and each.address not in taken}
                self._replace({name: _entry(each) for name, each in sorted({**known, **new}.items())})
        except OSError:
            return

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.with_name(self.path.name + ".lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _replace(self, document: Mapping[str, object]) -> None:
        handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(document, file, indent=1)
            Path(name).replace(self.path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def _entry(place: GuestPlace | None) -> dict[str, str] | None:
    return None if place is None else {"address": place.address, "vm": place.vm}
