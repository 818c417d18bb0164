"""A guest and one playbook, as tests want it: a failed step is an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.guest import converge as product

if TYPE_CHECKING:
    from vsphere_ml.core.model.guest import GuestFacts, Playbook, Probe, Shell
    from vsphere_ml.guest.converge import Convergence
    from vsphere_ml.guest.events import GuestListener


def check(playbook: Playbook, probe: Probe, facts: GuestFacts) -> Convergence:
    """Return what is missing of the playbook in the guest."""
    (found,) = product.check_all((playbook,), probe, facts)
    return found


def converge(playbook: Playbook, shell: Shell, facts: GuestFacts, notify: GuestListener) -> Convergence:
    """Bring the guest to the playbook; raises the error of the first step that fails."""
    reached, error = product.converge(playbook, shell, facts, notify)
    if error is not None:
        raise error
    return reached
