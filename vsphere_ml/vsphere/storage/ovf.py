"""Reads OVF packages: a descriptor beside its files, or all of it in one OVA, which is a tar file.

Rules: DMTF DSP0243, Open Virtualization Format 2.1 (what a descriptor has, the manifest, an OVA's order), and VMware's
`vmw:Config` for what DMTF has no word for, such as firmware.
"""

from __future__ import annotations

import errno
import hashlib
import re
import tarfile
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from vsphere_ml.core.bounded_file import chunks
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.model.inventory import OvfPackage
from vsphere_ml.core.units import Bytes
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_OVF = "{http://schemas.dmtf.org/ovf/envelope/1}"
_RASD = "{http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_ResourceAllocationSettingData}"
_VSSD = "{http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_VirtualSystemSettingData}"
_VMW = "{http://www.vmware.com/schema/ovf}"
_CPUS, _MEMORY = "3", "4"  # CIM_ResourceAllocationSettingData.ResourceType
_MOST_TEXT = 4 << 20  # bytes of a descriptor or a manifest; real ones have some KiB
_MOST_MEMBERS = 1000
_CHUNK = 1 << 20
_UNITS = re.compile(r"byte(?:\s*\*\s*([0-9]{1,5})(?:\^([0-9]{1,2}))?)?")
_AMOUNT = re.compile(r"[0-9]{1,18}")
_CHECKSUM = re.compile(r"(SHA1|SHA256|SHA512)\s*\((?P<name>[^)]+)\)\s*=\s*(?P<digest>[0-9A-Fa-f]+)")


@dataclass(frozen=True, slots=True)
class PackageFile:
    """A file of a package: where its bytes begin, and how many it has."""

    path: Path
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Package:
    """An OVF package that was read: its descriptor, the files that this names, and its manifest's checksums."""

    source: Path
    descriptor: bytes
    files: Mapping[str, PackageFile]
    checksums: Mapping[str, tuple[str, str]]  # name → algorithm, hexadecimal digits
    networks: tuple[str, ...]
    about: OvfPackage

    def verify(self) -> None:
        """Compare every file with the manifest; ConfigError as `parts`."""
        for name in sorted(self.checksums.keys() & self.files.keys()):
            for _ in self.parts(name):
                pass

    def parts(self, name: str) -> Iterator[bytes]:
        """Yield a file's bytes in parts.

        ConfigError `ovf.checksum` at the end of one that is not the manifest's, `ovf.unreadable` where it breaks off.
        """
        algorithm, wanted = self.checksums.get(name, ("sha256", ""))
        digest = hashlib.new(algorithm)
        try:
            for part in _parts(self.files[name]):
                digest.update(part)
                yield part
        except OSError as error:
            raise _unreadable_error(self.source, error.strerror or str(error)) from error
        if wanted and digest.hexdigest() != wanted:
            raise ConfigError(
                f"{name} of {self.source.name} is not the file that its manifest names",
                code="ovf.checksum",
                target=str(self.source),
                hint="download or export it again; `sha256sum` of the file is to be what the .mf has",
            )


def _parts(file: PackageFile) -> Iterator[bytes]:
    """Yield a file's bytes in parts; OSError when it is shorter than it was."""
    left = file.size
    with file.path.open("rb") as opened:
        opened.seek(file.offset)
        while left:
            part = opened.read(min(_CHUNK, left))
            if not part:
                raise OSError(errno.EIO, "it has become shorter", str(file.path))
            left -= len(part)
            yield part


def read_package(path: Path) -> Package:
    """Return the package of an OVF or OVA file.

    Raises ConfigError `ovf.unreadable` for what is none, `ovf.incomplete` where a file of it is missing.
    """
    try:
        return _read_package(path)
    except tarfile.TarError as error:
        raise _unreadable_error(path, f"it is no OVA: {error}") from error
    except OSError as error:
        raise _unreadable_error(path, error.strerror or str(error)) from error


def _read_package(path: Path) -> Package:
    next(chunks(path, path.stat().st_size + 1), b"")  # a regular file, or an error
    kind = path.suffix.casefold()
    if kind == ".ova":
        members = _members(path)
        name = next(iter(members), "")
        if not name.casefold().endswith(".ovf"):
            raise _unreadable_error(path, "it is no OVA: its first file is no .ovf")
    elif kind == ".ovf":
        name = path.name
        members = {
            each.name: PackageFile(each, 0, each.stat().st_size) for each in path.parent.iterdir() if each.is_file()
        }
    else:
        raise _unreadable_error(path, "its name ends neither in .ovf nor in .ova")
    descriptor = _text(members[name], path)
    envelope = _parse(descriptor, path)
    files = _find_files(envelope, members, path)
    manifest = members.get(f"{name.rpartition('.')[0]}.mf")
    text = _text(manifest, path) if manifest is not None else b""
    return Package(
        source=path,
        descriptor=descriptor,
        files=files,
        checksums=_checksums(text),
        networks=tuple(
            each.get(f"{_OVF}name", "") for each in envelope.iterfind(f"{_OVF}NetworkSection/{_OVF}Network")
        ),
        about=_describe(envelope, path, _digest(descriptor, text, files)),
    )


def _members(path: Path) -> dict[str, PackageFile]:
    found: dict[str, PackageFile] = {}
    with tarfile.open(path, "r:") as archive:
        for member in archive:
            if member.isreg():
                found[member.name] = PackageFile(path, member.offset_data, member.size)
            if len(found) > _MOST_MEMBERS:
                raise _unreadable_error(path, f"it has more than {_MOST_MEMBERS} files")
    return found


def _text(file: PackageFile, path: Path) -> bytes:
    if file.size > _MOST_TEXT:
        raise _unreadable_error(path, f"its descriptor or manifest is larger than {Bytes(_MOST_TEXT)}")
    return b"".join(_parts(file))


class _PlainTree(ET.TreeBuilder):
    """Refuses a document type in whatever encoding it is written: without one there are no entities to expand."""

    def doctype(self, *_declared: object) -> None:
        raise ValueError("it has a document type, which OVF has not")


def _parse(descriptor: bytes, path: Path) -> ET.Element:
    try:
        envelope = ET.fromstring(descriptor, ET.XMLParser(target=_PlainTree()))  # noqa: S314 - see `_PlainTree`
    except (ET.ParseError, ValueError, LookupError) as error:
        raise _unreadable_error(path, f"its descriptor cannot be read: {error}") from error
    if envelope.tag != f"{_OVF}Envelope":
        raise _unreadable_error(path, "its descriptor has no OVF Envelope of DMTF's version 1")
    if envelope.find(f"{_OVF}VirtualSystem") is None:
        raise _unreadable_error(path, "it describes no single VM")
    if envelope.find(f"{_OVF}VirtualSystem/{_OVF}EulaSection") is not None:
        raise _unreadable_error(path, "it has an EULA, which only a person can accept: deploy it in the vSphere Client")
    return envelope


def _find_files(envelope: ET.Element, members: Mapping[str, PackageFile], path: Path) -> dict[str, PackageFile]:
    found: dict[str, PackageFile] = {}
    for each in envelope.iterfind(f"{_OVF}References/{_OVF}File"):
        name = each.get(f"{_OVF}href", "")
        if name not in members:
            raise ConfigError(
                f"{path.name} names a file `{name}` that is not there",
                code="ovf.incomplete",
                target=str(path),
                hint="its files lie beside it, whole and under the names that it has; export or download all of them",
            )
        found[name] = members[name]
    return found


def _checksums(manifest: bytes) -> dict[str, tuple[str, str]]:
    found = _CHECKSUM.finditer(manifest.decode(errors="replace"))
    return {each["name"]: (each[1].lower(), each["digest"].lower()) for each in found}


def _digest(descriptor: bytes, manifest: bytes, files: Mapping[str, PackageFile]) -> str:
    """Return a digest of a package's content: of its files by the manifest, where there is one."""
    digest = hashlib.sha256(descriptor + b"\0" + manifest)
    if not manifest:
        for file in files.values():
            for part in _parts(file):
                digest.update(part)
    return digest.hexdigest()


def _describe(envelope: ET.Element, path: Path, digest: str) -> OvfPackage:
    hardware = f"{_OVF}VirtualSystem/{_OVF}VirtualHardwareSection"
    version = re.search(
        r"vmx-(\d{1,3})\b", envelope.findtext(f"{hardware}/{_OVF}System/{_VSSD}VirtualSystemType") or ""
    )
    amounts = {
        each.findtext(f"{_RASD}ResourceType"): each for each in reversed(envelope.findall(f"{hardware}/{_OVF}Item"))
    }
    disk = envelope.find(f"{_OVF}DiskSection/{_OVF}Disk")
    options = {
        each.get(f"{_OVF}key") or each.get(f"{_VMW}key"): each for each in envelope.iterfind(f"{hardware}/{_VMW}Config")
    }
    firmware = options.get("firmware")
    return OvfPackage(
        name=path.name,
        digest=digest,
        hardware_version=int(version[1]) if version else 0,
        cpus=_amount(amounts.get(_CPUS), ""),
        memory=Bytes(_amount(amounts.get(_MEMORY), "byte * 2^20")),
        disk=Bytes(
            _product(disk.get(f"{_OVF}capacity"), disk.get(f"{_OVF}capacityAllocationUnits")) if disk is not None else 0
        ),
        firmware=(firmware.get(f"{_VMW}value") or "bios").casefold() if firmware is not None else "bios",
    )


def _amount(item: ET.Element | None, unit: str) -> int:
    if item is None:
        return 0
    return _product(
        item.findtext(f"{_RASD}VirtualQuantity"), unit and (item.findtext(f"{_RASD}AllocationUnits") or unit)
    )


def _product(amount: str | None, unit: str | None) -> int:
    """Return `amount` of a unit as DSP0004's programmatic units write it, such as `byte * 2^20`; 0 for other text."""
    found = _UNITS.fullmatch(unit or "byte")
    if amount is None or found is None or not _AMOUNT.fullmatch(amount):
        return 0
    return int(amount) * int(found[1] or 1) ** int(found[2] or 1)


def _unreadable_error(path: Path, why: str) -> ConfigError:
    return ConfigError(
        f"{path.name} cannot be used as a source: {why}",
        code="ovf.unreadable",
        target=str(path),
        hint="source.ovf names an .ova, or an .ovf with its files beside it; `govc import.spec FILE` reads the same",
    )
