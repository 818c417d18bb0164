"""Whether anything asks for what the cluster file sets for its guests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml import shipped
from vsphere_ml.core import toml
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.nearest import nearest_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

# What steps ask for without a playbook's word, and what `vsml bench` does.
_OF_STEPS = {"proxy", "no_proxy", "interface", "mesh_public_key", "known_hosts"}
_OF_BENCH = {"mpirun", "container_python", "container_mpirun", "nccl_tests", "rdma_device"}


def check(settings: Mapping[str, str], playbooks: Iterable[Path], templates: Iterable[str]) -> None:
    """Raise ConfigError for a setting that nothing asks for and that looks like one that something does.

    A mistyped name would leave the default in force without a word. Others that nothing asks for do no harm.
    """
    read = list(templates)
    known = (_OF_STEPS | _OF_BENCH).union(
        *(_names_of_settings(path) for path in (*shipped.playbooks().glob("*.toml"), *playbooks))
    )
    for name in settings:
        near = None if name in known or any(name in text for text in read) else nearest_name(name, known)
        if near:
            raise ConfigError(
                f"no playbook asks for the setting `{name}`",
                code="guest.unknown-setting",
                target=f"guest.settings.{name}",
                hint=f"did you mean `{near}`?",
            )


def _names_of_settings(path: Path) -> set[str]:
    """Return what a playbook, which was read before without a mistake, takes from the settings."""
    return set(_references(toml.values(path.read_text(encoding="utf-8-sig"))))


def _references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("value"), str):
            yield value["value"]
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _references(each)
