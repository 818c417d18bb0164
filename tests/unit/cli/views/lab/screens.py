"""What `vsml lab` shows of a lab that runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vsphere_ml.cli.views.lab import lab as view
from vsphere_ml.cli.views.lab import lab_hosts
from vsphere_ml.lab.guests.seen import LabGuest
from vsphere_ml.lab.hosts import LabHost
from vsphere_ml.lab.state import Lab

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import RenderableType

HOME = Path("/home/ada/.local/state/vsml/labs/default")
LAB = Lab(
    name="default",
    url="https://127.0.0.1:8989/sdk",
    address="127.0.0.1:8989",
    username="vsml@lab.test",
    ca_file=HOME / "ca.pem",
    password_file=HOME / "password",
    pid=4711,
    topology="quad-8.0u3",
    api_version="8.0.3.0",
    control="127.0.0.1:8990",
    has_guests=True,
)
GUESTS = [
    LabGuest(
        name=f"node-{at:02}",
        vm=f"vm-{at}",
        address=f"10.219.0.{at}",
        state="on",
        host_key="SHA256:8x5fT0vJm2Zq1c9oVb3yWn7kR4sLhDpUeGiAaQtXw60",
        rate="1gbit" if at == 1 else None,
        faults=("disk-full",) if at == 2 else (),
    )
    for at in (1, 2)
]
HOSTS = [
    LabHost(
        name=f"esx-{at:02}.lab.test",
        esxi="8.0.3",
        connection="connected" if at < 3 else "notResponding",
        maintenance=at == 2,
        ssh=at == 1,
        address="127.0.0.1",
        port=41000 + at,
        fingerprint="SHA256:8x5fT0vJm2Zq1c9oVb3yWn7kR4sLhDpUeGiAaQtXw60",
        faults=("no-return",) if at == 3 else (),
        reboot_ms=3000,
    )
    for at in (1, 2, 3)
]
SCREENS: dict[str, Callable[[], RenderableType]] = {
    "lab host": lambda: lab_hosts.text(HOSTS[2:]),
    "lab hosts": lambda: lab_hosts.text(HOSTS),
    "lab status": lambda: view.status(LAB, GUESTS),
    "lab up": lambda: view.text(LAB),
}
