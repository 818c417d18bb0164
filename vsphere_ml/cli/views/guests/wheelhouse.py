"""A wheelhouse that was built: what is in it, and how nodes get it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from vsphere_ml.cli.views.layout.text import line, lines
from vsphere_ml.core.order import count

if TYPE_CHECKING:
    from pathlib import Path

    from rich.text import Text

    from vsphere_ml.guest.wheelhouse.manifest import WheelhouseManifest


class WheelhouseData(TypedDict):
    """The manifest of what was built, and the folder of this machine where it lies beside the wheels."""

    folder: Path
    manifest: WheelhouseManifest


def text(made: WheelhouseManifest, into: Path) -> Text:
    """Return what was built against what, and the settings with which the playbook `runtime` installs it."""
    libraries = [f"{name} {version}" for name, version in (("CUDA", made.cuda), ("NCCL", made.nccl)) if version]
    against = ", ".join([made.framework, *libraries, *filter(None, [made.mpi])])
    return lines(
        line((str(into), "bold"), f": {count(len(made.wheels), 'wheel')}, {made.size / 1e6:.0f} MB"),
        line(f"  {made.horovod} with {', '.join(made.carriers)}, built on {made.node} against {against}"),
        line(f"  for Python {made.python} ({made.python_tag}) on {made.machine}, glibc {made.glibc}"),
        line("for the playbook runtime, in [guest.settings]:"),
        line(f'  wheelhouse = "{into}"'),
        line(f'  runtime_packages = "{", ".join(made.requirements)}"'),
    )


def data(made: WheelhouseManifest, into: Path) -> WheelhouseData:
    """Return the manifest, and where it lies."""
    return {"folder": into, "manifest": made}
