"""OVF packages are read as DMTF describes them, and what is none is refused by a code."""

from __future__ import annotations

import tarfile
from itertools import product
from typing import TYPE_CHECKING

import pytest

from tests.fakes import ovf
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.units import gib
from vsphere_ml.vsphere.storage.ovf import read_package

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_a_descriptor_tells_the_hardware_and_the_files(tmp_path: Path) -> None:
    found = read_package(ovf.package(tmp_path))
    about = found.about
    assert (about.name, about.hardware_version, about.cpus, about.firmware) == ("ubuntu.ovf", 20, 2, "efi")
    assert (about.memory, about.disk, found.networks) == (gib(2), gib(10), ("VM Network",))
    assert {name: file.size for name, file in found.files.items()} == {"ubuntu-disk1.vmdk": len(ovf.DISK)}
    found.verify()


def test_an_archive_has_the_same_content_as_its_files(tmp_path: Path) -> None:
    whole = read_package(ovf.package(tmp_path))
    packed = read_package(ovf.archive(tmp_path))
    assert packed.about.digest == whole.about.digest
    assert b"".join(packed.parts("ubuntu-disk1.vmdk")) == ovf.DISK
    packed.verify()


def test_another_content_is_another_digest_with_a_manifest_and_without(tmp_path: Path) -> None:
    digests = set()
    for number, (disk, manifest) in enumerate(product((ovf.DISK, ovf.DISK + b"x"), (True, False))):
        path = ovf.package(tmp_path / str(number), disk=disk, manifest=manifest)
        digests.add(read_package(path).about.digest)
    assert len(digests) == 4


def test_a_file_that_is_not_the_manifests_is_told(tmp_path: Path) -> None:
    path = ovf.package(tmp_path)
    (tmp_path / "ubuntu-disk1.vmdk").write_bytes(ovf.DISK + b"x")
    with pytest.raises(ConfigError) as caught:
        read_package(path).verify()
    assert caught.value.code == "ovf.checksum"


def text(content: bytes) -> Callable[[Path], Path]:
    return lambda folder: ovf.package(folder, content, manifest=False)


def named(name: str, content: bytes = b"") -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return write


def out_of_order(folder: Path) -> Path:
    ovf.package(folder)
    return ovf.archive(folder, "ubuntu-disk1.vmdk", "ubuntu.ovf")


def with_link(folder: Path) -> Path:
    """An archive whose disk is a link out of it."""
    ovf.package(folder, manifest=False)
    with tarfile.open(folder / "link.ova", "w") as packed:
        packed.add(folder / "ubuntu.ovf", "ubuntu.ovf")
        link = tarfile.TarInfo("ubuntu-disk1.vmdk")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        packed.addfile(link)
    return folder / "link.ova"


VAPP = (
    ovf.descriptor()
    .replace(b"VirtualSystem ", b"VirtualSystemCollection ")
    .replace(b"</VirtualSystem>", b"</VirtualSystemCollection>")
)


def declared(descriptor: bytes, encoding: str) -> bytes:
    """Return a descriptor with a document type, and whole but for that."""
    _, end, body = descriptor.decode().partition("?>")
    body = body if end else descriptor.decode()
    return f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE x [<!ENTITY a "b">]>{body}'.encode(encoding)


@pytest.mark.parametrize(
    ("write", "code"),
    [
        (named("nothing.iso"), "ovf.unreadable"),
        (named("empty.ovf"), "ovf.unreadable"),
        (named("empty.ova"), "ovf.unreadable"),
        (named("text.ova", b"x" * 2048), "ovf.unreadable"),
        (lambda folder: folder / "gone.ovf", "ovf.unreadable"),
        (lambda folder: folder, "ovf.unreadable"),
        (text(b"<html/>"), "ovf.unreadable"),
        (text(declared(ovf.descriptor(), "utf-8")), "ovf.unreadable"),
        (text(declared(ovf.descriptor(), "utf-16")), "ovf.unreadable"),
        (text(ovf.descriptor() + b" " * (5 << 20)), "ovf.unreadable"),
        (text(VAPP), "ovf.unreadable"),
        (text(ovf.descriptor().replace(b"<Info>A cloud image</Info>", b"<EulaSection/>")), "ovf.unreadable"),
        (text(ovf.descriptor(disk="elsewhere.vmdk")), "ovf.incomplete"),
        (text(ovf.descriptor(disk="../secret.vmdk")), "ovf.incomplete"),
        (text(ovf.descriptor(disk="https://example.com/disk.vmdk")), "ovf.incomplete"),
        (out_of_order, "ovf.unreadable"),
        (with_link, "ovf.incomplete"),
    ],
)
def test_what_is_no_package_is_refused(write: Callable[[Path], Path], code: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read_package(write(tmp_path))
    assert (caught.value.code, bool(caught.value.hint)) == (code, True)


@pytest.mark.parametrize("amount", ["-1", "9" * 400, "\N{DEVANAGARI DIGIT ONE}", "1e9", ""])
def test_amounts_that_are_none_are_not_known(amount: str, tmp_path: Path) -> None:
    content = ovf.descriptor().replace(b'ovf:capacity="10"', f'ovf:capacity="{amount}"'.encode())
    assert read_package(ovf.package(tmp_path, content)).about.disk == 0
