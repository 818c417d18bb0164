"""Images in memory and on disk, made of a few files."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from typing import TYPE_CHECKING, Any

from vsphere_ml.kubernetes.image.containerfile import make_client_config, make_server_config
from vsphere_ml.kubernetes.image.file_tree import FileEntry, FileKind, FileTree
from vsphere_ml.kubernetes.image.read_image import ReadImage
from vsphere_ml.kubernetes.image.variants import AS_USER, ROOT, SshdVariant

if TYPE_CHECKING:
    from pathlib import Path

USER = AS_USER
INCLUDE_SSH = "Include /etc/ssh/ssh_config.d/*.conf\nHost *\n    SendEnv LANG\n"
INCLUDE_SSHD = "# Ubuntu's\nInclude /etc/ssh/sshd_config.d/*.conf\nUsePAM yes\n"
PASSWD = "root:x:0:0:root:/root:/bin/bash\nmpiuser:x:10001:10001::/home/mpiuser:/bin/sh\n"
PROGRAMS = ("usr/sbin/sshd", "usr/bin/ssh", "opt/hpcx/ompi/bin/orted", "opt/hpcx/ompi/bin/mpirun")
LINKS = {"usr/local/mpi": "/opt/hpcx/ompi", "var/run": "/run", "bin": "usr/bin"}
SET_ENV = "SetEnv PATH=/usr/local/mpi/bin:/usr/bin LD_LIBRARY_PATH=/usr/local/mpi/lib\n"


def files_of(variant: SshdVariant) -> dict[str, str]:
    """Return an NGC-like image's settings after a build by our Containerfile."""
    own = "etc/ssh/sshd_config.d/vsml.conf" if variant.is_root else variant.sshd_config.lstrip("/")
    return {
        "etc/passwd": PASSWD,
        "etc/ssh/ssh_config": INCLUDE_SSH,
        "etc/ssh/sshd_config": INCLUDE_SSHD,
        "etc/ssh/ssh_config.d/vsml.conf": make_client_config(variant),
        own: make_server_config(variant) + SET_ENV,
    }


def image_of(variant: SshdVariant = ROOT, **more: Any) -> ReadImage:
    """Return that image as it is read."""
    entries = {path: FileEntry(kind=FileKind.FILE, text=text) for path, text in files_of(variant).items()}
    entries |= {path: FileEntry(kind=FileKind.FILE) for path in PROGRAMS}
    entries |= {path: FileEntry(kind=FileKind.LINK, target=target) for path, target in LINKS.items()}
    entries["run/sshd"] = FileEntry(kind=FileKind.FOLDER)
    return ReadImage(source="image.tar", tree=FileTree(entries), **more)


def lay_down(root: Path, variant: SshdVariant = ROOT) -> Path:
    """Return a root file system of that image."""
    for path, text in {**files_of(variant), **dict.fromkeys(PROGRAMS, "")}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
        (root / path).chmod(0o755)
    (root / "run" / "sshd").mkdir(parents=True)
    for path, target in LINKS.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).symlink_to(target)
    return root


def tar_of(root: Path, *, prefix: str = "", without: tuple[str, ...] = ()) -> bytes:
    """Return an archive of a folder, as `docker export` writes it."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for each in sorted(root.rglob("*")):
            name = str(each.relative_to(root))
            if name not in without:
                archive.add(each, f"{prefix}{name}", recursive=False)
    return made.getvalue()


def layer_of(files: dict[str, str]) -> bytes:
    """Return a layer of a few files."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return made.getvalue()


def oci_layout(folder: Path, layers: list[bytes], config: dict[str, Any]) -> Path:
    """Return a folder in OCI's image layout, its image in an index of two platforms."""

    def put(content: bytes) -> str:
        digest = hashlib.sha256(content).hexdigest()
        blob = folder / "blobs" / "sha256" / digest
        blob.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(content)
        return f"sha256:{digest}"

    described = [{"digest": put(each)} for each in layers]
    settings = put(json.dumps({"config": config}).encode())
    manifest = put(json.dumps({"config": {"digest": settings}, "layers": described}).encode())
    other = {"digest": "sha256:" + "0" * 64, "platform": {"os": "linux", "architecture": "arm64"}}
    ours = {"digest": manifest, "platform": {"os": "linux", "architecture": "amd64"}}
    index = put(json.dumps({"manifests": [other, ours]}).encode())
    (folder / "index.json").write_text(json.dumps({"manifests": [{"digest": index}]}))
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    return folder
