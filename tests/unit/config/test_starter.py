from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import jsonschema
import pytest

from vsphere_ml import shipped
from vsphere_ml.config import starter
from vsphere_ml.config.load import load, load_text
from vsphere_ml.config.starter import StarterAnswers
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.report.file_choices import GpuChoice

if TYPE_CHECKING:
    from tests.golden import Golden

FILLED = re.sub(r"<([^<>\n]+)>", r"\1", starter.text().replace("<angle brackets>", "angle brackets"))


def test_the_starter_file_says_what_is_to_be_filled_in_and_nothing_else(tmp_path: Path, golden: Golden) -> None:
    file = tmp_path / "cluster.toml"
    starter.write(file, starter.text())
    with pytest.raises(ConfigError) as raised:
        load(file)
    assert len(raised.value.problems) >= 5
    golden(f"{problem.target}: {problem.message}" for problem in raised.value.problems)


def test_the_starter_file_is_right_once_it_is_filled_in() -> None:
    spec = load_text(FILLED)
    assert (spec.name, spec.vcenter.server, len(spec.nodes)) == ("train", "vcenter.example.com", 4)


@pytest.mark.parametrize("line", [line for line in FILLED.splitlines() if re.match(r"# [a-z_]+ = ", line)])
def test_each_line_that_is_commented_out_is_right_too(line: str) -> None:
    key = line.removeprefix("# ").partition(" = ")[0]
    if key == "thumbprint":
        assert "…" in line, "a thumbprint cannot be given in advance"
        return
    text = FILLED.replace(line, line.removeprefix("# "))
    assert text != FILLED
    assert load_text(text).nodes


def test_the_first_line_names_the_schema_for_editors() -> None:
    first, _, rest = starter.text().partition("\n")
    word, _, address = first.partition(" ")
    file = Path(unquote(urlsplit(address).path))
    assert (word, urlsplit(address).scheme) == ("#:schema", "file")
    jsonschema.validate(tomllib.loads(FILLED), json.loads(file.read_text()))
    assert rest.startswith("#")


@pytest.mark.parametrize("before", [None, '{"$id": "urn:vsml:cluster"}'])
def test_a_copy_schema_the_file_is_named_by_a_path_that_goes_with_both(tmp_path: Path, before: str | None) -> None:
    schema = tmp_path / "cluster.schema.json"
    if before is not None:
        schema.write_text(before)
    text = starter.text(copy_schema=True)
    starter.write(tmp_path / "cluster.toml", text, copy_schema=True)
    assert text.partition("\n")[0] == "#:schema ./cluster.schema.json"
    assert schema.read_bytes() == shipped.schema("cluster").read_bytes()


def test_no_other_file_is_taken_for_the_schema(tmp_path: Path) -> None:
    schema = tmp_path / "cluster.schema.json"
    schema.write_text("[]")
    with pytest.raises(ConfigError) as raised:
        starter.write(tmp_path / "cluster.toml", starter.text(copy_schema=True), copy_schema=True)
    assert (raised.value.code, raised.value.target) == ("config.exists", str(schema))
    assert [each.name for each in tmp_path.iterdir()] == ["cluster.schema.json"]


def test_a_file_that_is_there_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text("mine")
    with pytest.raises(ConfigError) as raised:
        starter.write(file, starter.text())
    assert raised.value.code == "config.exists"
    assert file.read_text() == "mine"


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        starter.write(tmp_path / "none" / "cluster.toml", starter.text())
    assert raised.value.code == "config.unwritable"


def test_the_shipped_folders_are_found() -> None:
    assert (shipped.templates() / "cluster.toml").is_file()
    assert (shipped.playbooks() / "README.md").is_file()
    with pytest.raises(FileNotFoundError, match="nonsense"):
        shipped.folder("nonsense")


def test_names_that_read_like_another_blank_stay_as_they_are() -> None:
    odd = {"cluster": "a100", "datastore": "vm-network", "template": 'say "train"', "network": "node-[01-04]"}
    spec = load_text(
        starter.fill_in(
            StarterAnswers(
                name="train",
                vcenter={"lab": "default"},
                datacenter="dc",
                gpu=GpuChoice(kind="vgpu", profile="A100-40C"),
                nic_model="ConnectX-6 Dx",
                nic_network="cpus = 16",
                prefix="node-",
                nodes=2,
                cpus=8,
                memory_gib=32,
                **odd,
            )
        )
    )
    assert (spec.location.cluster, spec.location.datastore, spec.source.template) == tuple(odd.values())[:3]
    assert {(node.port_group, node.nic.port_group, node.cpus) for node in spec.nodes} == {
        ("node-[01-04]", "cpus = 16", 8)
    }
