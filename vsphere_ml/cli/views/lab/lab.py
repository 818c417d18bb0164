"""A running lab, as text, as data, and as lines for a shell. The password is never among them."""

from __future__ import annotations

import re
import shlex
from itertools import takewhile
from typing import TYPE_CHECKING, NotRequired, TypedDict

from rich.console import Group
from rich.text import Text

from vsphere_ml.cli.views.layout.text import line, lines, table
from vsphere_ml.cli.views.layout.verbatim import VerbatimText
from vsphere_ml.core.codec import Extended

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rich.console import RenderableType

    from vsphere_ml.cli.views.layout.columns import Columns
    from vsphere_ml.lab.guests.seen import LabGuest
    from vsphere_ml.lab.state import Lab

GUESTS = "Linux, behind each VM that is powered on with first boot data"
_SENTENCE_END = re.compile(r"\.(?=\s|$)")
NO_HARDWARE = "(simulated, no hardware)"


class SimulatedData(TypedDict):
    """That there is no hardware."""

    simulated: bool


class StartedLabData(SimulatedData):
    """Whether the lab was started, or ran already; with `--kubernetes` the kubeconfig of its control plane."""

    started: bool
    kubeconfig: NotRequired[Path]


class LabStatusData(SimulatedData):
    """The guests of a lab."""

    guests: Sequence[LabGuest]


class ShapedGuestsData(TypedDict):
    """The guests whose links were given a rate."""

    name: str
    guests: Sequence[LabGuest]


class LabGuestData(TypedDict):
    """A guest of a lab."""

    name: str
    guest: LabGuest


class StoppedLabData(TypedDict):
    """Whether a lab was stopped, or did not run."""

    name: str
    stopped: bool


class BuiltLabData(TypedDict):
    """The lab's program."""

    program: Path


def text(lab: Lab) -> Text:
    """Return where the lab answers, and how to sign in."""
    return lines(
        line(("vCenter   ", "bold"), lab.url, (f" {NO_HARDWARE}", "yellow")),
        line(("version   ", "bold"), lab.api_version),
        line(("topology  ", "bold"), lab.topology),
        line(("user      ", "bold"), lab.username),
        line(("password  ", "bold"), f"in {lab.password_file}"),
        line(("CA        ", "bold"), str(lab.ca_file)),
        line(("guests    ", "bold"), GUESTS if lab.has_guests else "none"),
    )


def status(lab: Lab, guests: Sequence[LabGuest]) -> RenderableType:
    """Return where the lab answers, and its guests."""
    if not guests:
        return text(lab)
    rows = [
        (each.name, each.state, each.address, each.rate or "", ", ".join(each.faults), each.host_key) for each in guests
    ]
    titles = ("GUEST", "STATE", "ADDRESS", "RATE", "FAULTS", "HOST KEY")
    return Group(text(lab), Text(), table(titles, rows, ("HOST KEY", "RATE", "FAULTS")))


def data(lab: Lab) -> Extended[Lab, SimulatedData]:
    """Return the lab's fields."""
    return Extended(lab, {"simulated": True})


def exports(lab: Lab) -> VerbatimText:
    """Return export lines for sh; the password is read from its file when they run, so it is in no output."""
    values = {
        "GOVC_URL": shlex.quote(lab.url),
        "GOVC_USERNAME": shlex.quote(lab.username),
        "GOVC_PASSWORD": f'"$(cat {shlex.quote(str(lab.password_file))})"',
        "GOVC_TLS_CA_CERTS": shlex.quote(str(lab.ca_file)),
    }
    return VerbatimText("".join(f"export {name}={value}\n" for name, value in values.items()))


def topologies(shipped: Mapping[str, Path]) -> Columns:
    """Return the sites that ship, with what each says of itself."""
    return table(("NAME", "WHAT IT IS"), ((name, _first_sentence(path)) for name, path in shipped.items()))


def _first_sentence(path: Path) -> str:
    """Return the first sentence of the comment that a topology begins with; its path when there is none."""
    comment = takewhile(lambda line: line.startswith("#"), path.read_text().splitlines())
    text = " ".join(line.removeprefix("#").strip() for line in comment)
    return text[: end.end()] if (end := _SENTENCE_END.search(text)) else text or str(path)
