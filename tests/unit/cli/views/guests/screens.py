"""What commands show that enter guests: what these lack, how a run ended, and what a command said."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group

from tests.fakes.guest import FakeGuest, File
from tests.fakes.guests import FakeGuests
from tests.fakes.requirements import cluster
from vsphere_ml.cli.views.guests import command, guests, wheelhouse
from vsphere_ml.core.errors import GuestError
from vsphere_ml.core.ports.vcenter import GuestPlace
from vsphere_ml.core.tools.horovod import Carrier
from vsphere_ml.flows.guests.command import GuestCommand, KnownPlaces, run
from vsphere_ml.flows.guests.configure import ConfigureResult, GuestPlan, GuestResult
from vsphere_ml.guest.converge import Convergence, StepOutcome, StepState
from vsphere_ml.guest.wheelhouse.manifest import WheelhouseManifest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from rich.console import RenderableType

    from vsphere_ml.flows.guests.guests import GuestTargets

SPEC = cluster(8)
NAMES = tuple(node.name for node in SPEC.nodes)
SAID = "driver 535.183.06, GPU 0000:02:00.0: GRID A100-40C, 40960 MiB of framebuffer, licence: Licensed (2026-12-31)"
WHEELHOUSE = WheelhouseManifest(
    built="2026-11-27T12:00:01Z",
    node="node-1",
    in_container=False,
    framework="tensorflow==2.18.1",
    horovod="horovod==0.28.1",
    carriers=(Carrier.NCCL, Carrier.GLOO),
    python="3.10.12",
    python_tag="cp310",
    machine="x86_64",
    glibc="2.35",
    compiler="g++ 11.4.0",
    cuda="12.4",
    nccl="2.21.5",
    mpi="",
    wheels=(),
)
STEPS = {
    "packages chrony, rdma-core, ibverbs-utils": "not installed: chrony, ibverbs-utils, rdma-core",
    "nvidia_driver": "the kernel has no module nvidia; 535.183.06 is to be installed from /opt/NVIDIA-Linux.run",
    "time": None,
}


def guest(name: str, *, lacks: bool, state: StepState = StepState.PENDING) -> GuestResult:
    outcomes = tuple(
        StepOutcome(step=step, state=state if lacks and drift else StepState.OK, drift=drift if lacks else None)
        for step, drift in STEPS.items()
    )
    reached = Convergence(node=name, playbook="base", digest="0" * 12, outcomes=outcomes)
    return GuestResult(node=name, convergences=(reached,), log=f"/home/ada/.local/state/vsml/logs/{name}.log")


def configured() -> RenderableType:
    broken = GuestError(
        reason="step `nvidia_driver` failed: it asks for a reboot again right after one",
        code="guest.step-failed",
        target=NAMES[7],
    )
    seen = tuple(guest(name, lacks=name != NAMES[6]) for name in NAMES)
    plan = GuestPlan(cluster="train", playbooks=(), guests=seen, unmanaged=(NAMES[0],))
    full = (guest(name, lacks=True, state=StepState.CHANGED) for name in NAMES[:7])
    ended = (*full, GuestResult(node=NAMES[7], error=broken))
    return Group(guests.plan(plan), guests.text(ConfigureResult(plan=plan, applied=True, guests=ended)))


def answered() -> RenderableType:
    """Return what is shown where six nodes say the same, and two have no such file."""
    there = {name: FakeGuest(name) for name in NAMES}
    for name in NAMES[:6]:
        there[name].files["/etc/said"] = File(f"{SAID}\n")
    known = {name: GuestPlace(name=name, address="10.0.0.9", vm="vm-1") for name in NAMES}
    asked = GuestCommand(text="cat /etc/said")
    places = KnownPlaces(known=known, find=find_nobody)
    return command.text(run(SPEC, asked, FakeGuests(there), places=places, notify_guest=lambda _: None))


def find_nobody(_only: Collection[str]) -> GuestTargets:
    raise AssertionError("every address is known")


SCREENS: dict[str, Callable[[], RenderableType]] = {
    "configure": configured,
    "run": answered,
    "runtime build": lambda: wheelhouse.text(WHEELHOUSE, Path("wheelhouse")),
}
