"""Nodes are cloned from a content library's VM template, which govmomi's simulator keeps and the lab tells."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.integration import labs
from vsphere_ml.config.load import load_text
from vsphere_ml.core.errors import NotPossible, VSphereError
from vsphere_ml.core.model.inventory import LibraryItem
from vsphere_ml.core.model.spec import Source
from vsphere_ml.core.placement.resolve import resolve
from vsphere_ml.core.ports.vcenter import Scope
from vsphere_ml.flows.site.read_site import scope

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.lab.state import Lab
    from vsphere_ml.vsphere.gateway import Gateway

pytestmark = pytest.mark.lab
LIBRARY = """
[[library]]
name = "images"
datastore = "nfs-images"
[[library.item]]
name = "ubuntu-lib"
template = "ubuntu-22.04-gpu"
[[library.item]]
name = "appliance"
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with labs.with_library(tmp_path_factory.mktemp("libraries"), LIBRARY) as started:
        yield started


@pytest.fixture(scope="module")
def other_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with labs.running(tmp_path_factory.mktemp("without"), "quad-8.0u3") as started:
        yield started


def spec(tmp_path: Path, item: str = "ubuntu-lib", library: str = "images") -> ClusterSpec:
    text = labs.cluster_file("books", cluster="gpu", gpu='{ profile = "A100-40C" }')
    source = f'library = "{library}"\nitem = "{item}"'
    return load_text(text.replace('template = "ubuntu-22.04-gpu"', source), tmp_path / "cluster.toml")


def test_nodes_are_clones_of_the_librarys_template_and_a_second_run_finds_nothing(
    lab: Lab, vcenter: Gateway, tmp_path: Path
) -> None:
    wanted = spec(tmp_path)
    found = resolve(wanted, vcenter.read_site(scope(wanted))).source
    assert (found.name, found.template) == ("ubuntu-lib", True)
    assert found.settings is not None
    report = labs.brought(wanted, lab, vcenter)
    assert report.done
    again = labs.brought(wanted, lab, vcenter)
    assert again.done
    assert not again.applied
    (node,) = [vm for vm in vcenter.read_site(scope(wanted)).vms if vm.cluster_mark == "books"]
    assert (node.node_mark, node.powered_on) == ("books-1", True)


def test_items_are_told_with_their_types_and_one_template(vcenter: Gateway) -> None:
    libraries = vcenter.read_site(Scope(library="images", item="appliance")).libraries
    assert libraries is not None
    assert libraries.names == ("images",)
    items = sorted(libraries.items, key=lambda each: each.name)
    assert [replace(each, package=None) for each in items] == [
        LibraryItem(name="appliance", type="ovf"),
        LibraryItem(name="ubuntu-lib", type="vm-template"),
    ]
    assert [each.package is not None for each in items] == [True, False]


@pytest.mark.parametrize(
    ("library", "item", "code"),
    [
        ("images", "ubuntu-lab", "site.not-found"),
        ("image", "ubuntu-lib", "site.not-found"),
    ],
)
def test_what_cannot_be_cloned_is_refused(vcenter: Gateway, tmp_path: Path, library: str, item: str, code: str) -> None:
    wanted = spec(tmp_path, item, library)
    with pytest.raises(NotPossible) as caught:
        resolve(wanted, vcenter.read_site(scope(wanted)))
    assert caught.value.code == code


def test_a_vcenter_without_libraries_says_that_there_is_none(tmp_path: Path, other_lab: Lab) -> None:
    wanted, gateway = spec(tmp_path), labs.gateway(other_lab)
    try:
        with pytest.raises(NotPossible) as caught:
            resolve(wanted, gateway.read_site(scope(wanted)))
    finally:
        gateway.close()
    assert (caught.value.code, caught.value.target) == ("site.not-found", "source.library")


def test_an_api_that_refuses_is_told_and_no_password_with_it(
    vcenter: Gateway, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vsphere_ml.vsphere.connection.rest.SESSION", "/api/no-such-thing")
    with pytest.raises(VSphereError) as caught:
        vcenter.read_site(replace(Scope(), library="images", item="ubuntu-lib"))
    assert caught.value.code == "library.unreadable"
    assert lab.password() not in str(caught.value)


def test_a_source_says_what_it_is(tmp_path: Path) -> None:
    assert str(spec(tmp_path).source) == "images/ubuntu-lib"
    assert str(Source(template="ubuntu")) == "ubuntu"
