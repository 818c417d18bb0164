"""The forms in which an image is read, what layers hide, and files that are no image."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from typing import TYPE_CHECKING

import pytest

from tests.unit.kubernetes.image.trees import lay_down, layer_of, oci_layout, tar_of
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.kubernetes.image.contract import check_images
from vsphere_ml.kubernetes.image.file_tree import FileEntry, FileKind, FileTree
from vsphere_ml.kubernetes.image.read_image import ReadImage, read_folders, read_image
from vsphere_ml.kubernetes.image.variants import ROOT

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = {"Env": ["PATH=/usr/local/mpi/bin:/bin", "A=b=c"], "User": "10001", "Entrypoint": ["/entrypoint.sh"]}
HIDING = {"opt/hpcx/ompi/bin/.wh.orted": "", "etc/ssh/ssh_config.d/.wh..wh..opq": "", "etc/ssh/ssh_config.d/a": ""}


def save(folder: Path, layers: list[bytes]) -> Path:
    """Return what `docker save` writes."""
    files = {f"{at}/layer.tar": layer for at, layer in enumerate(layers)}
    manifest = [{"Config": "config.json", "Layers": [*files]}]
    files |= {"config.json": json.dumps({"config": CONFIG}).encode(), "manifest.json": json.dumps(manifest).encode()}
    with tarfile.open(folder / "saved.tar", "w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return folder / "saved.tar"


def pack(folder: Path, name: str) -> Path:
    (folder.parent / name).write_bytes(tar_of(folder))
    return folder.parent / name


@pytest.mark.parametrize("form", ["folder", "tar", "tar.gz", "./tar", "oci", "oci.tar", "saved"])
def test_an_image_is_the_same_in_every_form(form: str, tmp_path: Path) -> None:
    root = lay_down(tmp_path / "root")
    file = tmp_path / "root.tar"
    match form:
        case "folder":
            file = root
        case "tar":
            file.write_bytes(tar_of(root))
        case "tar.gz":
            file.write_bytes(gzip.compress(tar_of(root)))
        case "./tar":
            file.write_bytes(tar_of(root, prefix="./"))
        case "oci":
            file = oci_layout(tmp_path / "oci", [tar_of(root)], CONFIG)
        case "oci.tar":
            file = pack(oci_layout(tmp_path / "oci", [gzip.compress(tar_of(root))], CONFIG), "oci.tar")
        case "saved":
            file = save(tmp_path, [tar_of(root)])
    image = read_image(file)
    assert check_images([image], ROOT) == ()
    assert image.configured == (form in {"oci", "oci.tar", "saved"})
    if image.configured:
        assert (image.variables["A"], image.user, image.entrypoint) == ("b=c", "10001", ("/entrypoint.sh",))


def test_what_a_layer_hides_is_gone_and_what_it_has_counts(tmp_path: Path) -> None:
    root = lay_down(tmp_path / "root")
    image = read_image(save(tmp_path, [tar_of(root), layer_of(HIDING)]))
    assert {each.code for each in check_images([image], ROOT)} == {"image-mpi", "image-ssh-client"}
    again = layer_of({"opt/hpcx/ompi/bin/orted": ""})
    assert read_image(save(tmp_path, [tar_of(root), layer_of(HIDING), again])).tree.find("opt/hpcx/ompi/bin/orted")


def test_folders_lie_over_one_another_where_they_are_seen(tmp_path: Path) -> None:
    runtime = tmp_path / "runtime"
    (runtime / "bin").mkdir(parents=True)
    (runtime / "bin" / "prted").touch(0o755)
    image = read_folders({lay_down(tmp_path / "root"): "", runtime: "/opt/vsml"})
    assert image.tree.is_program("/opt/vsml/bin/prted")


def test_links_are_followed_inside_the_image_alone() -> None:
    def link(target: str) -> FileEntry:
        return FileEntry(kind=FileKind.LINK, target=target)

    tree = FileTree({
        "usr/bin/ssh": FileEntry(kind=FileKind.FILE), "bin": link("usr/bin"), "sbin": link("../../../bin"),
        "round": link("/about"), "about": link("round"), "etc/passwd": link("/../../etc/shadow"),
    })  # fmt: skip
    assert tree.is_program("/sbin/ssh")
    assert tree.find("/round") is None
    assert tree.resolve("/etc/passwd") == "etc/shadow"


def test_private_keys_are_not_read(tmp_path: Path) -> None:
    root = lay_down(tmp_path / "root")
    (root / "etc/ssh/ssh_host_rsa_key").write_text("secret")
    (root / "root/.ssh").mkdir(parents=True)
    (root / "root/.ssh/id_rsa").write_text("secret")
    for image in (read_image(root), read_image(pack(root, "root.tar"))):
        assert not any("secret" in each.text for each in image.tree.entries.values())


def test_a_link_on_disk_that_leaves_the_root_is_not_followed(tmp_path: Path) -> None:
    root = lay_down(tmp_path / "root")
    (tmp_path / "passwd").write_text("mpiuser:x:1:1::/home/mpiuser:/bin/sh")
    (root / "etc/passwd").unlink()
    (root / "etc/passwd").symlink_to(tmp_path / "passwd")
    assert "image-user" in {each.code for each in check_images([read_image(root)], ROOT)}


HOSTILE = {
    "empty": b"",
    "text": b"FROM scratch\n" * 100,
    "cut": gzip.compress(b"x" * 4096)[:-20],
    "zstd": b"\x28\xb5\x2f\xfd" + b"\x00" * 600,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_archive_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(HOSTILE[name])
    refused(tmp_path / name)


@pytest.mark.parametrize(
    "index",
    [
        "", "[]", "{}", '{"manifests": []}', '{"manifests": [{"digest": "sha256:../../../etc/passwd"}]}',
        '{"manifests": [{"digest": 3}]}', '{"layers": [], "config": null}', "[" * 100_000, "9" * 5_000_000,
    ],
)  # fmt: skip
def test_an_index_of_another_form_is_refused(index: str, tmp_path: Path) -> None:
    (tmp_path / "index.json").write_text(index)
    refused(tmp_path)


def test_a_folder_or_archive_that_is_no_root_is_refused(tmp_path: Path) -> None:
    (tmp_path / "some").mkdir()
    refused(tmp_path / "some")
    (tmp_path / "some" / "file").touch()
    refused(pack(tmp_path / "some", "some.tar"))
    refused(tmp_path / "none")


def refused(path: Path) -> ReadImage | None:
    with pytest.raises(ConfigError) as raised:
        read_image(path)
    assert (raised.value.code, raised.value.target) == ("kubernetes.image-unreadable", str(path))
    return None
