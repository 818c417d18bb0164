"""`vsml export kubernetes` writes to stdout or into a folder, and over nobody else's file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import yaml

from tests.unit.config.texts import ONE_NODE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from tests.golden import Golden
    from tests.unit.cli.conftest import Ended

SITE = ("--vsphere-namespace", "ml", "--offline")
FILES = ["vm-class.yaml", "namespaces.yaml", "mpijob.yaml"]
PARTS = ("--only", "vm-class", "--only", "namespaces", "--only", "mpijob")


def cluster_file(tmp_path: Path, more: str = "") -> str:
    file = tmp_path / "cluster.toml"
    text = ONE_NODE.replace('"A100-40C" }', '"grid_a100-40c" }\nnic = { kind = "none" }')
    file.write_text(f"{text}{more}")
    return str(file)


def test_a_part_of_the_export_is_yaml_on_stdout(vsml: Callable[..., Ended], tmp_path: Path) -> None:
    ended = vsml("export", "kubernetes", cluster_file(tmp_path), "--only", "vm-class", *SITE)
    assert (ended.status, ended.err) == (0, "")
    assert [each["kind"] for each in yaml.safe_load_all(ended.out)] == ["VirtualMachineClass"]


def test_long_values_are_not_folded(vsml: Callable[..., Ended], tmp_path: Path) -> None:
    value = "x " * 2000 + "x"
    file = cluster_file(tmp_path, f'extra_config = {{ "my.key" = "{value}" }}\n')
    ended = vsml("export", "kubernetes", file, "--only", "vm-class", *SITE)
    (vm_class,) = yaml.safe_load_all(ended.out)
    assert vm_class["spec"]["configSpec"]["extraConfig"][-1]["value"]["_value"] == value


def test_the_job_passes_lint(vsml: Callable[..., Ended], tmp_path: Path) -> None:
    image = "registry.example.com/train:1"
    made = vsml("export", "kubernetes", cluster_file(tmp_path), "--only", "mpijob", "--image", image)
    (tmp_path / "job.yaml").write_text(made.out)
    linted = json.loads(vsml("-o", "json", "k8s", "lint", str(tmp_path / "job.yaml")).out)
    assert [(each["jobs"], each["diagnostics"]) for each in linted["data"]["files"]] == [(1, [])]


def test_a_folder_is_filled_again_with_the_same(vsml: Callable[..., Ended], tmp_path: Path) -> None:
    command = ("export", "kubernetes", cluster_file(tmp_path), *SITE, *PARTS, "--image", "r.example.com/train:1")
    folder = tmp_path / "new" / "k8s"
    ended = vsml(*command, "--into", str(folder))
    assert (ended.status, ended.out.splitlines()) == (0, [str(folder / name) for name in FILES])
    first = {each.name: each.read_text() for each in folder.iterdir()}
    assert sorted(first) == sorted(FILES)
    assert vsml(*command, "--into", str(folder)).status == 0
    assert {each.name: each.read_text() for each in folder.iterdir()} == first
    data = json.loads(vsml("-o", "json", *command).out)["data"]
    assert {each["name"]: each["text"] for each in data["files"]} == first


def test_files_of_others_are_left_alone(vsml: Callable[..., Ended], tmp_path: Path) -> None:
    (tmp_path / "mpijob.yaml").write_text("kind: MPIJob\n")
    command = ("export", "kubernetes", cluster_file(tmp_path), *SITE, *PARTS, "--image", "r.example.com/train:1")
    ended = vsml("-o", "json", *command, "--into", str(tmp_path))
    assert ended.status == 2
    (error,) = json.loads(ended.out)["errors"]
    assert (error["code"], error["target"]) == ("config.exists", str(tmp_path / "mpijob.yaml"))
    assert (tmp_path / "mpijob.yaml").read_text() == "kind: MPIJob\n"
    assert not (tmp_path / "vm-class.yaml").exists()


def test_a_folder_that_cannot_be_made_is_an_error(vsml: Callable[..., Ended], tmp_path: Path) -> None:
    file = cluster_file(tmp_path)
    ended = vsml("-o", "json", "export", "kubernetes", file, "--only", "vm-class", *SITE, "--into", f"{file}/k8s")
    assert ended.status == 2
    assert json.loads(ended.out)["errors"][0]["code"] == "file.unwritable"


def test_what_is_of_a_lab_says_so(
    vsml: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setenv("VSML_STATE_DIR", str(tmp_path / "state"))
    file = cluster_file(tmp_path, '\n[vcenter]\nlab = "default"\n')
    ended = vsml("export", "kubernetes", file, "--only", "vm-class", *SITE)
    golden(ended.out.splitlines()[0])
    assert len(list(yaml.safe_load_all(ended.out))) == 1
