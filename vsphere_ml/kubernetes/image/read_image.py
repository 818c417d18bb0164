"""Reads an image without a container engine: a root file system, a tar of one, an OCI layout, or what `save` writes.

Sources: OCI image-spec, image-layout.md, manifest.md and layer.md; moby, image/spec (manifest.json of `docker save`).
"""

from __future__ import annotations

import os
import re
import stat
import tarfile
import zlib
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from vsphere_ml.core import json_text
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.kubernetes.image.file_tree import LARGEST_TEXT, FileEntry, FileKind, FileTree, is_indexed, is_read
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Open: TypeAlias = "Callable[[str], IO[bytes]]"  # by the name of a file of the layout
_LARGEST_JSON = 4 << 20  # bytes
_DIGEST = re.compile(r"(sha256|sha512):[0-9a-f]{64,128}")
_INDEX, _MANIFEST = "index.json", "manifest.json"
_DEEPEST = 3  # indexes in indexes
_BROKEN = (OSError, EOFError, tarfile.TarError, zlib.error, ValueError, KeyError, TypeError, AttributeError, IndexError)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadImage:
    """An image's files, and its configuration where it has one: a root file system alone has none."""

    source: str
    tree: FileTree
    variables: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    entrypoint: tuple[str, ...] = ()
    configured: bool = False


def read_image(path: Path) -> ReadImage:
    """Return an image; ConfigError `kubernetes.image-unreadable` for what is none, or has layers of another form."""
    try:
        if path.is_dir():
            return _read_folder(path)
        with tarfile.open(path) as archive:
            return _read_archive(archive, str(path))
    except _BROKEN as error:
        why = (error.strerror if isinstance(error, OSError) else "") or str(error).partition("\n")[0]
        raise _unreadable_error(path, why or type(error).__name__) from error


def read_folders(folders: Mapping[Path, str], source: str = "") -> ReadImage:
    """Return the image of folders that lie over one another, the lowest first, each with where it is to be seen."""
    tree = FileTree()
    for folder, at in folders.items():
        tree.lay(_walk(folder, at.strip("/")))
    return ReadImage(source=source, tree=tree)


def _read_folder(path: Path) -> ReadImage:
    if (path / _INDEX).is_file():
        return _read_oci(lambda name: (path / name).open("rb"), str(path))
    if not (path / "etc").is_dir():
        raise _unreadable_error(path, f"there is neither etc nor {_INDEX} in it")
    return read_folders({path: ""}, str(path))


def _read_archive(archive: tarfile.TarFile, source: str) -> ReadImage:
    first = archive.next()
    if first is None:
        raise ValueError("it is empty")
    names = {first.name} if _is_rootfs(first.name) else {each.name for each in archive.getmembers()}
    if _INDEX in names:
        return _read_oci(lambda name: _extract(archive, name), source)
    if _MANIFEST in names:
        return _read_saved(lambda name: _extract(archive, name), source)
    tree = FileTree()
    tree.lay(_entries(archive, archive))
    if tree.find("etc") is None:
        raise ValueError(f"there is neither etc nor {_INDEX} in it")
    return ReadImage(source=source, tree=tree)


def _is_rootfs(name: str) -> bool:
    """Return whether an archive's first name can only be of a root file system, which is then read once."""
    return name.strip("./").partition("/")[0] in {"bin", "boot", "dev", "etc", "home", "lib", "usr", ".dockerenv"}


def _extract(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    found = archive.extractfile(name)
    if found is None:
        raise ValueError(f"{name} is no file")
    return found


def _read_oci(opened: Open, source: str) -> ReadImage:
    manifest = _read_json(opened, _INDEX)
    for _ in range(_DEEPEST):
        if "manifests" not in manifest:
            break
        manifest = _read_json(opened, _blob(_choose(manifest["manifests"])))
    layers = [_blob(each) for each in manifest["layers"]]
    return _read_layers(opened, layers, _blob(manifest["config"]), source)


def _choose(manifests: list[Any]) -> Any:
    """Return the manifest for the machines that vSphere's hosts are; the first where none is."""
    wanted = {"os": "linux", "architecture": "amd64"}
    fitting = (each for each in manifests if wanted.items() <= (each.get("platform") or {}).items())
    return next(fitting, manifests[0])


def _read_saved(opened: Open, source: str) -> ReadImage:
    saved = _read_json(opened, _MANIFEST)[0]
    return _read_layers(opened, saved["Layers"], saved["Config"], source)


def _blob(descriptor: Any) -> str:
    digest = str(descriptor["digest"])
    if not _DIGEST.fullmatch(digest):
        raise ValueError(f"{digest[:80]} is no digest")
    return f"blobs/{digest.replace(':', '/')}"


def _read_json(opened: Open, name: str) -> Any:
    with opened(name) as file:
        text = file.read(_LARGEST_JSON + 1)
    if len(text) > _LARGEST_JSON:
        raise ValueError(f"{name} is too large")
    return json_text.parse(text)


def _read_layers(opened: Open, layers: list[str], config: str, source: str) -> ReadImage:
    tree = FileTree()
    for layer in layers:
        with opened(layer) as file, _as_tar(file) as archive:
            tree.lay(_entries(archive, archive))
    settings = _read_json(opened, config).get("config") or {}
    pairs = (str(each).partition("=") for each in settings.get("Env") or ())
    return ReadImage(
        source=source,
        tree=tree,
        variables={name: value for name, _, value in pairs},
        user=str(settings.get("User") or ""),
        entrypoint=tuple(map(str, settings.get("Entrypoint") or ())),
        configured=True,
    )


@contextmanager
def _as_tar(file: IO[bytes]) -> Iterator[tarfile.TarFile]:
    with tarfile.open(fileobj=file, mode="r|*") as archive:
        yield archive


def _entries(archive: tarfile.TarFile, members: tarfile.TarFile) -> Iterator[tuple[str, FileEntry]]:
    for member in members:
        path = os.path.normpath(f"/{member.name}").lstrip("/")
        hidden = path.rpartition("/")[2].startswith(".wh.")
        if path and (hidden or is_indexed(path, link=member.issym() or member.islnk())):
            yield path, _entry_of(archive, member, path)


def _entry_of(archive: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> FileEntry:
    if member.issym():
        return FileEntry(kind=FileKind.LINK, target=member.linkname)
    if member.islnk():  # another name of a file of the same layer
        return FileEntry(kind=FileKind.LINK, target=f"/{member.linkname.lstrip('/')}")
    if member.isdir():
        return FileEntry(kind=FileKind.FOLDER, mode=member.mode)
    text = ""
    if member.isfile() and is_read(path, member.size):
        text = _extract_member(archive, member)
    return FileEntry(kind=FileKind.FILE, mode=member.mode, text=text)


def _extract_member(archive: tarfile.TarFile, member: tarfile.TarInfo) -> str:
    file = archive.extractfile(member)
    return "" if file is None else file.read(LARGEST_TEXT).decode("utf-8", "replace")


def _walk(folder: Path, at: str) -> Iterator[tuple[str, FileEntry]]:
    for root, folders, files in os.walk(folder):
        inside = os.path.relpath(root, folder)
        for name in (*folders, *files):
            path = os.path.normpath(f"/{at}/{inside}/{name}").lstrip("/")
            link = os.path.islink(f"{root}/{name}")  # noqa: PTH114 - of each of an image's files
            if is_indexed(path, link=link):
                yield path, _entry_on_disk(Path(root, name), path)


def _entry_on_disk(file: Path, path: str) -> FileEntry:
    found = file.lstat()
    if stat.S_ISLNK(found.st_mode):
        return FileEntry(kind=FileKind.LINK, target=str(file.readlink()))
    if stat.S_ISDIR(found.st_mode):
        return FileEntry(kind=FileKind.FOLDER, mode=stat.S_IMODE(found.st_mode))
    readable = stat.S_ISREG(found.st_mode) and is_read(path, found.st_size)
    text = file.read_bytes().decode("utf-8", "replace") if readable else ""
    return FileEntry(kind=FileKind.FILE, mode=stat.S_IMODE(found.st_mode), text=text)


def _unreadable_error(path: Path, why: str) -> ConfigError:
    return ConfigError(
        f"{path} cannot be read as an image: {why}",
        code="kubernetes.image-unreadable",
        target=str(path),
        hint="name a root file system, a tar of one, an OCI layout or archive, or what `docker save -o FILE` writes",
    )
