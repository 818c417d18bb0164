"""How hosts' NIC drivers are set up, held against what a file wants of them for RoCE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.diagnostics import Diagnostic, Severity
from vsphere_ml.core.tools import roce

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from vsphere_ml.core.model.inventory import Host
    from vsphere_ml.core.model.spec import RoceSpec

    Parameters = Mapping[str, Mapping[str, str]]  # by module


def driver_findings(asked: RoceSpec, hosts: Iterable[Host]) -> Iterator[Diagnostic]:
    """Yield the hosts whose drivers do not have all that is asked for, or are unknown; none when nothing is."""
    wanted = roce.wanted_parameters(asked)
    for host in hosts if wanted else ():
        if host.module_options is None:
            yield _not_reported(host)
        elif missing := [*_differences(wanted, dict(host.module_options))]:
            yield Diagnostic(
                severity=Severity.INFO,
                code="host.roce",
                target=host.name,
                message="; ".join(missing),
                hint=_hint(wanted, dict(host.module_options)),
            )


def _not_reported(host: Host) -> Diagnostic:
    return Diagnostic(
        severity=Severity.INFO,
        code="host.roce-unknown",
        target=host.name,
        message="vCenter does not tell the options of its NIC drivers, which takes the privilege Host.Config.Settings",
        hint=f"on the host: esxcli system module parameters list -m {roce.CORE}",
    )


def _differences(wanted: Parameters, seen: Mapping[str, str]) -> Iterator[str]:
    for module, keys in wanted.items():
        if module not in seen:
            yield f"it has no driver {module}"
        elif words := ", ".join(roce.differing_options(seen[module], keys)):
            yield f"{module}: {words}"


def _hint(wanted: Parameters, seen: Mapping[str, str]) -> str:
    """Return what to type for the drivers that are there, each with its whole string."""
    options = {module: roce.merge_options(seen[module], keys) for module, keys in wanted.items() if module in seen}
    typed = [roce.by_hand(module, entire) for module, entire in options.items() if entire != seen[module]]
    if not typed:
        return "on the host: `esxcli software vib list` shows its drivers; install NVIDIA's nmlx5"
    return f"empty the host, type there `{'`, `'.join(typed)}`, and reboot it"
