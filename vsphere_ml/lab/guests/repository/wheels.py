"""A wheelhouse of stand-ins for TensorFlow and Horovod: what installs in a second, and cannot train."""

from __future__ import annotations

import io
import tarfile
import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

VERSIONS = {"tensorflow": "2.18.1", "horovod": "0.28.1"}  # as the playbook `runtime` asks for
_WHEEL = "Wheel-Version: 1.0\nGenerator: vsml lab\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
_CODE = 'raise ImportError("{name}: stand-in of the vsml lab; it cannot train")\n'
_METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: stand-in of the vsml lab\n"


def build(archive: Path) -> None:
    """Write the wheelhouse, a .tar of wheels as `python_runtime` takes it."""
    with tarfile.open(archive, "w") as tar:
        for name, version in VERSIONS.items():
            content = _wheel(name, version)
            entry = tarfile.TarInfo(f"{name}-{version}-py3-none-any.whl")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))


def _wheel(name: str, version: str) -> bytes:
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}/__init__.py": _CODE.format(name=name),
        f"{info}/METADATA": _METADATA.format(name=name, version=version),
        f"{info}/WHEEL": _WHEEL,
    }
    # pip needs the list of files, and does not ask for their checksums.
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as wheel:
        for path, text in files.items():
            wheel.writestr(zipfile.ZipInfo(path), text)
    return content.getvalue()
