"""Files of datastores that playbooks bring to guests: looked for before anything is done, then fetched."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vsphere_ml.core.ports.events import Fetching
from vsphere_ml.guest.playbooks.playbook import sources

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from vsphere_ml.core.model.guest import Playbook
    from vsphere_ml.core.ports.events import Listener
    from vsphere_ml.core.ports.vcenter import VCenter

_TENTH = 10


def refuse_missing_files(playbooks: Sequence[Playbook], vcenter: VCenter) -> None:
    """Raise VSphereError `datastore.no-file` or `datastore.refused` for a file that cannot be had."""
    for file in _wanted_files(playbooks):
        vcenter.file_size(file)


def fetch_files(
    playbooks: Sequence[Playbook], vcenter: VCenter, notify: Listener, steps: Collection[str] | None = None
) -> Mapping[str, str]:
    """Return where each file lies on this machine now, as steps look it up: `file:[datastore] path`.

    With `steps` only what these need, by title.
    """
    return {
        f"file:{file}": str(vcenter.fetch(file, _FetchProgress(file, notify)))
        for file in _wanted_files(playbooks, steps)
    }


def _wanted_files(playbooks: Sequence[Playbook], steps: Collection[str] | None = None) -> Iterator[str]:
    for book in playbooks:
        chosen = tuple(step for step in book.steps if steps is None or step.title in steps)
        yield from (str(source) for source in sources(replace(book, steps=chosen)) if source.is_datastore)


class _FetchProgress:
    """Reports each tenth of a download."""

    def __init__(self, file: str, notify: Listener) -> None:
        self._file, self._notify, self._last = file, notify, -1

    def __call__(self, done: int, total: int) -> None:
        tenth = done * _TENTH // max(total, 1)
        if tenth != self._last:
            self._last = tenth
            self._notify(Fetching(file=self._file, done=done, total=total))
