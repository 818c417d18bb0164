"""What is said of a wheelhouse that was built: what is in it, and the settings that install it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.unit.guest.wheelhouse.site import ANSWERS, request
from vsphere_ml.cli.views.guests import wheelhouse
from vsphere_ml.core.tools.horovod import Carrier
from vsphere_ml.guest.wheelhouse.manifest import Wheel, WheelhouseManifest, describe_build
from vsphere_ml.guest.wheelhouse.tools import read

if TYPE_CHECKING:
    from tests.golden import Golden

INTO = Path("/srv/wheelhouse")
WHEEL = Wheel(
    file="horovod-0.28.1-cp311-cp311-linux_x86_64.whl",
    name="horovod",
    version="0.28.1",
    python_tag="cp311",
    size=1_010_000,
    sha256="ab" * 32,
)


def made(*carriers: Carrier) -> WheelhouseManifest:
    return describe_build(
        request(carriers=carriers), read("node-1", ANSWERS), (WHEEL, WHEEL), "2026-11-29T10:00:00+00:00"
    )


def test_what_was_built_and_how_it_is_installed(golden: Golden) -> None:
    golden(wheelhouse.text(made(*Carrier), INTO).plain)
    golden(wheelhouse.text(made(Carrier.GLOO), INTO).plain)


def test_its_data_is_the_manifest() -> None:
    data = wheelhouse.data(made(Carrier.MPI), INTO)
    assert data["folder"] == INTO
    assert data["manifest"].mpi == "Open MPI 5.0.11"
