"""The commented starter file of `vsml init`, and how a new cluster file is written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vsphere_ml import shipped
from vsphere_ml.config.document import toml_value
from vsphere_ml.core import json_text
from vsphere_ml.core.bounded_file import read_bytes
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.hints import Hint, command_line
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from vsphere_ml.core.report.file_choices import GpuChoice

_ID, _LARGEST = "urn:vsml:cluster", 1 << 20  # the schema's name, and bytes
_FILL_IN = "Fill in the <angle brackets>, then type"
_SIGN_IN = """server = "<vcenter.example.com>"
username = "<vsml@vsphere.local>"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StarterAnswers:
    """What of a site a new file names. The NIC's model is empty where nodes get none."""

    name: str  # the cluster's
    vcenter: Mapping[str, str]  # keys and values of [vcenter]
    datacenter: str
    cluster: str
    datastore: str
    template: str
    network: str
    gpu: GpuChoice
    nic_model: str
    nic_network: str
    prefix: str  # of nodes' names
    nodes: int
    cpus: int
    memory_gib: int


def text(*, copy_schema: bool = False) -> str:
    """Return the starter file, with the schema for editors as taplo and Even Better TOML look for it.

    That is a copy in the file's own folder, or else where this machine's vsml has it.
    """
    address = f"./{_schema().name}" if copy_schema else _schema().as_uri()
    return f"#:schema {address}\n" + (shipped.templates() / "cluster.toml").read_text(encoding="utf-8")


def fill_in(answers: StarterAnswers, *, copy_schema: bool = False) -> str:
    """Return the starter file for one site, with its comments and nothing left to fill in."""
    made, values = text(copy_schema=copy_schema), _values(answers)
    if missing := [blank for blank in values if blank not in made]:
        raise AssertionError(f"the starter file has no {missing}")
    # In one pass: what a site calls its datastore may read like another blank.
    return re.sub("|".join(map(re.escape, values)), lambda found: values[found[0]], made)


def _values(answers: StarterAnswers) -> dict[str, str]:
    """Return what stands in the place of each part of the starter file."""
    sign_in = "".join(f"{key} = {toml_value(value)}\n" for key, value in answers.vcenter.items())
    profile = f", profile = {toml_value(answers.gpu.profile)}" if answers.gpu.profile else ""
    nic = f'kind = "auto", model = {toml_value(answers.nic_model)}, port_group = {toml_value(answers.nic_network)}'
    return {
        _FILL_IN: "Written for one site by `vsml init`. Type",
        '"<train>"': toml_value(answers.name),
        _SIGN_IN: sign_in,
        '"<dc-1>"': toml_value(answers.datacenter),
        '"<gpu-cluster>"': toml_value(answers.cluster),
        '"<datastore-1>"': toml_value(answers.datastore),
        '"<ubuntu-22.04-gpu>"': toml_value(answers.template),
        '"<vm-network>"': toml_value(answers.network),
        "cpus = 16": f"cpus = {answers.cpus}",
        'memory = "64GiB"': f'memory = "{answers.memory_gib}GiB"',
        "[profile.a100]": "[profile.gpu]",
        '"a100"': '"gpu"',
        'gpu = { kind = "vgpu", profile = "A100-40C", count = 1 }': f'gpu = {{ kind = "{answers.gpu.kind}"{profile} }}',
        'nic = { kind = "auto", model = "ConnectX-6 Dx", port_group = "<roce-network>" }': (
            f"nic = {{ {nic} }}" if answers.nic_model else 'nic = { kind = "none" }'
        ),
        "node-[01-04]": f"{answers.prefix}[01-{answers.nodes:02}]",
    }


def write(path: Path, content: str, *, copy_schema: bool = False) -> None:
    """Write a new cluster file; with `copy_schema` the schema for editors too; ConfigError as `write_new`.

    A schema that vsml wrote there before is renewed.
    """
    refuse_existing(path)
    if copy_schema:
        _renew_schema(path.with_name(_schema().name))
    write_new(path, content)


def _renew_schema(path: Path) -> None:
    if _is_schema(path):
        path.unlink()
    elif path.is_symlink() or path.exists():
        raise _file_exists(path, "move it away, or leave --schema out")
    write_new(path, _schema().read_text(encoding="utf-8"))


def _schema() -> Path:
    return shipped.schema("cluster")


def _is_schema(path: Path) -> bool:
    try:
        found = json_text.parse(read_bytes(path, _LARGEST))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and found.get("$id") == _ID


def refuse_existing(path: Path) -> None:
    """Raise ConfigError `config.exists` when something is there."""
    if path.is_symlink() or path.exists():
        raise _file_exists(path)


def write_new(path: Path, content: str) -> None:
    """Write a new file; ConfigError `config.exists` when something is there, `config.unwritable` when it cannot.

    The check and the writing are one step, so a file that appears in between is safe too.
    """
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(content)
    except FileExistsError:
        raise _file_exists(path) from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "its name is not a path"
        raise ConfigError(
            f"cannot write {path}: {why[:1].lower()}{why[1:]}",
            code="config.unwritable",
            target=str(path),
            hint="name a file in a folder you may write to",
        ) from error


def _file_exists(path: Path, hint: str = "") -> ConfigError:
    return ConfigError(
        f"{path} is there already, and is left as it is",
        code="config.exists",
        target=str(path),
        hint=hint or Hint("name another file, or type: ", command_line("vsml", "check", path)),
    )
