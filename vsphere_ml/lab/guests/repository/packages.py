"""The lab's apt repository: packages that stand in for drivers and for what needs hardware. For lab guests alone."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from email.utils import formatdate
from pathlib import Path
from typing import TYPE_CHECKING

from vsphere_ml.lab import topology as topologies
from vsphere_ml.lab.guests import hub, image

if TYPE_CHECKING:
    from collections.abc import Iterable

VERSIONS = {
    "datacenter-gpu-manager-exporter": "4.8.2-1+lab",
    "docker.io": "20.10.24+lab",
    "doca-ofed": "2.9.1+lab",
    "mlnx-fw-updater": "24.10+lab",
    "nvidia-container-toolkit": "1.17.4+lab",
    "numactl": "2.0.14+lab",
    "pciutils": "3.7.0+lab",
}
# What the driver's installer wants to build with. There is nothing to build.
_EMPTY = ("build-essential", "dkms", f"linux-headers-{os.uname().release}")
_NO_HOST_DRIVER = "535.183.04"
_BASE = "base"  # what every guest has before anything is installed
_DRIVER = "nvidia-driver"
_POSTINST = """\
#!/bin/sh
fault=/var/lib/vsml-lab/on-install/{name}
[ ! -e $fault ] || . $fault
[ ! -d /usr/lib/vsml-lab/dkms ] || /usr/local/bin/dkms autoinstall
echo "{name} is a stand-in of the vsml lab" >&2
"""


def driver_version(topology: Path) -> str:
    """Return the guest driver's version that suits the site's vGPU manager."""
    models = topologies.tables(topologies.read(topology), "model")
    found = [str(model["vgpu_manager"]) for model in models if model.get("vgpu_manager")]
    return found[0] if found else _NO_HOST_DRIVER


def build(repository: Path, driver: str, images: Iterable[Path] = ()) -> None:
    """Make the repository, a flat one: `deb [trusted=yes] file:/opt/vsml-lab ./` in a guest.

    Beside the stand-ins it has the distribution's packages that came with the guests' images.
    """
    repository.mkdir(parents=True, exist_ok=True)
    shipped = sorted(each.name for each in (hub.HERE / "standins").iterdir() if each.name != _BASE)
    entries = [_package(repository, source, driver) for source in (*shipped, *_EMPTY)]
    entries += [_adopt_package(repository, deb) for at in images for deb in sorted((at / image.POOL).glob("*.deb"))]
    index = "\n".join(entries).encode()
    (repository / "Packages").write_bytes(index)
    digest = hashlib.sha256(index).hexdigest()
    release = (
        f"Origin: vsml lab\nSuite: lab\nDate: {formatdate(usegmt=True)}\nSHA256:\n {digest} {len(index)} Packages\n"
    )
    (repository / "Release").write_text(release)


def _package(repository: Path, source: str, driver: str) -> str:
    """Build one package and return its entry in the index."""
    name, version = _source_and_version(source, driver)
    control = (
        f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: vsml lab\n"
        f"Description: stand-in of the vsml lab for {name}\n Drives no hardware. Good for lab guests alone.\n"
    )
    file = repository / f"{name}_{version}_all.deb"
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "root"
        if source in _EMPTY:
            root.mkdir()
        else:
            shutil.copytree(hub.HERE / "standins" / source, root)
        if source == _DRIVER:
            (root / "usr" / "lib" / "vsml-lab" / "driver-version").write_text(f"{driver}\n")
        for each in (root, *root.rglob("*")):
            each.chmod(0o755 if each.is_dir() or each.parent.name in ("bin", "init.d") else 0o644)
        _control(root / "DEBIAN", name, control)
        hub.run("dpkg-deb", "--root-owner-group", "-Znone", "--build", str(root), str(file))
    return _entry(file, control)


def _adopt_package(repository: Path, deb: Path) -> str:
    """Take a package of the distribution and return its entry in the index."""
    file = repository / deb.name.replace("%3a", ".")  # apt reads a file's name as an address
    shutil.copy(deb, file)
    return _entry(file, hub.run("dpkg-deb", "--field", str(file)))


def _entry(file: Path, control: str) -> str:
    content = file.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    return f"{control}Filename: ./{file.name}\nSize: {len(content)}\nSHA256: {digest}\n"


def _source_and_version(source: str, driver: str) -> tuple[str, str]:
    if source == _DRIVER:
        return f"nvidia-linux-grid-{driver.partition('.')[0]}", driver
    return source, VERSIONS.get(source, "1+lab")


def _control(folder: Path, name: str, control: str) -> None:
    folder.mkdir()
    (folder / "control").write_text(control)
    script = folder / "postinst"
    script.write_text(_POSTINST.format(name=name))
    script.chmod(0o755)
