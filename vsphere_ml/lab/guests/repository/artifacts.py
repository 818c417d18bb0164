"""Files that sites keep for themselves, as stand-ins: NVIDIA's .run driver, MLNX_OFED's archive, an image's archive."""

from __future__ import annotations

import base64
import io
import json
import tarfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

IMAGE = "lab/train:1"
_RUN = """\
#!/bin/sh
# A stand-in of the vsml lab for the installer of NVIDIA's driver.
case " $* " in *" --silent "*) ;; *) echo "it would ask (stand-in of the vsml lab)" >&2; exit 1 ;; esac
if [ -e /run/modules/nouveau ]; then
    echo "ERROR: The Nouveau kernel driver is currently in use by your system. (stand-in of the vsml lab)" >&2
    exit 1
fi
at=$(mktemp)
sed '1,/^PAYLOAD$/d' "$0" | base64 -d >"$at" && dpkg-deb -x "$at" / && rm "$at"
exit
PAYLOAD
"""
_INSTALL = """\
#!/bin/sh
# A stand-in of the vsml lab for MLNX_OFED's installer.
case " $* " in *" --without-fw-update "*) ;; *)
    echo "it would flash the NIC of its host, which no guest must (stand-in of the vsml lab)" >&2
    exit 1 ;;
esac
dpkg-deb -x "$(dirname "$0")/ofed.deb" /
"""


def build(folder: Path, repository: Path) -> None:
    """Make the files, of what the lab's packages hold."""
    folder.mkdir(parents=True, exist_ok=True)
    (driver,) = repository.glob("nvidia-linux-grid-*.deb")
    version = driver.name.split("_")[1]
    payload = base64.encodebytes(driver.read_bytes()).decode()
    (folder / f"NVIDIA-Linux-x86_64-{version}-grid.run").write_text(_RUN + payload)
    (ofed,) = repository.glob("doca-ofed_*.deb")
    inside = {"mlnxofedinstall": _INSTALL.encode(), "ofed.deb": ofed.read_bytes()}
    name = "MLNX_OFED_LINUX-24.10-lab"
    _archive(folder / f"{name}.tgz", {f"{name}/{each}": content for each, content in inside.items()})
    manifest = json.dumps([{"Config": "lab.json", "RepoTags": [IMAGE], "Layers": []}])
    _archive(folder / "image.tar", {"manifest.json": manifest.encode()})


def _archive(file: Path, contents: dict[str, bytes]) -> None:
    with tarfile.open(file, "w:gz" if file.suffix == ".tgz" else "w") as archive:
        for name, content in contents.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755
            archive.addfile(entry, io.BytesIO(content))
