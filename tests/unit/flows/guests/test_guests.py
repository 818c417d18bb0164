from __future__ import annotations

from vsphere_ml.core.errors import GuestError
from vsphere_ml.flows.guests.guests import fold_errors


def fault(node: str, reason: str) -> GuestError:
    return GuestError(reason=reason, code="guest.unreachable", target=node)


def test_errors_of_one_reason_are_one_line_with_all_names() -> None:
    alike = {f"node-{at}": fault(f"node-{at}", "no answer") for at in range(1, 65)}
    assert fold_errors({**alike, "node-7": fault("node-7", "another key")}) == (
        "node-[1-6], node-[8-64]: no answer",
        "node-7: another key",
    )
