"""The folder of a lab's guests: what they are made of, and what they find there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.lab import runtime
from vsphere_ml.lab.guests import image
from vsphere_ml.lab.guests.repository import artifacts, packages, wheels

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def make(guests: Path, driver: str, images: Mapping[str, Path]) -> None:
    """Make it, with stand-ins of this version for NVIDIA's guest driver."""
    packages.build(guests / "packages", driver, images.values())
    wheels.build(guests / "wheelhouse.tar")
    artifacts.build(guests / "files", guests / "packages")
    image.link(guests, images)
    runtime.home().mkdir(parents=True, exist_ok=True)  # guests see it from their start, made or not yet
    (guests / "runtime").symlink_to(runtime.home())
