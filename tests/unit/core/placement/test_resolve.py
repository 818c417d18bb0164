from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.fakes.ovf import PACKAGE
from tests.fakes.pictures import quad_8u3, seed_7u2, settings, vm
from tests.fakes.requirements import cluster, node, nodes, seed_cluster
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.model.inventory import (
    ContentLibraries,
    Folder,
    FolderRef,
    Inventory,
    LibraryItem,
    Network,
    NetworkRef,
    PoolRef,
    VmRef,
)
from vsphere_ml.core.model.spec import CloneKind, ClusterSpec, Location, NicRequest, Source
from vsphere_ml.core.placement.resolve import resolve
from vsphere_ml.core.units import Bytes, gib

if TYPE_CHECKING:
    from tests.golden import Golden

HERE = Location(datacenter="lab-dc", cluster="gpu", folder="train", datastore="vsan")


def refused(spec: ClusterSpec, site: Inventory) -> NotPossible:
    with pytest.raises(NotPossible) as caught:
        resolve(spec, site)
    return caught.value


def test_names_and_paths_mean_the_same() -> None:
    by_name = resolve(cluster(1), quad_8u3())
    paths = Location(datacenter="/lab-dc", cluster="/lab-dc/host/gpu", folder="/lab-dc/vm/train/", datastore="vsan")
    source = Source(template="/lab-dc/vm/ubuntu-22.04-gpu")
    assert resolve(cluster(1, location=paths, source=source), quad_8u3()) == by_name
    assert by_name.folder == "train"


def test_what_is_not_named_is_the_only_one_there_is() -> None:
    resolved = resolve(seed_cluster(1, location=Location()), seed_7u2())
    assert (resolved.cluster.name, resolved.datastore.name, resolved.folder) == ("gpu", "vsan", "")


def test_what_is_not_named_and_not_alone_is_refused(golden: Golden) -> None:
    error = refused(cluster(1, location=replace(HERE, datastore=None)), quad_8u3())
    assert error.code == "site.ambiguous"
    golden(error)


def test_a_mistyped_name_is_answered_with_the_nearest_and_with_all_there_are(golden: Golden) -> None:
    error = refused(cluster(1, source=Source(template="ubuntu-22.4-gpu")), quad_8u3())
    assert error.code == "site.not-found"
    golden(error)
    assert error.hint == 'set source.template = "ubuntu-22.04-gpu"'


def test_all_that_is_wrong_is_told_at_once(golden: Golden) -> None:
    place = Location(datacenter="dc", cluster="gpus", hosts=("esx-9*",), pool="x", datastore="vsann")
    wanted = (node("node-1", port_group="mgmt", nic=NicRequest(port_group="roce2")),)
    error = refused(cluster(wanted, location=place, source=Source(template="nope")), quad_8u3())
    assert (error.code, error.target) == ("site.not-found", "location.datacenter")
    golden(error)
    keys = [line.partition(": ")[0] for line in error.details]
    assert keys == [
        "location.datacenter",
        "location.cluster",
        "location.datastore",
        "source.template",
        "nodes.node-1.network.port_group",
        "nodes.node-1.nic.port_group",
    ]


def test_pools_of_one_name_are_told_apart_by_their_paths(golden: Golden) -> None:
    site = quad_8u3()
    pools = {PoolRef("p1"): "/lab-dc/host/gpu/Resources/a/ml", PoolRef("p2"): "/lab-dc/host/gpu/Resources/b/ml"}
    site = replace(site, clusters=(replace(site.clusters[0], pools=pools),))
    error = refused(cluster(1, location=replace(HERE, pool="ml")), site)
    assert (error.code, error.target) == ("site.ambiguous", "location.pool")
    golden(error)
    assert resolve(cluster(1, location=replace(HERE, pool="b/ml")), site).pool == "p2"


def test_templates_of_one_name_are_told_apart_by_their_folders() -> None:
    site = quad_8u3()
    old = Folder(ref=FolderRef("group-v9"), path="old")
    twin = vm("ubuntu-22.04-gpu", "vm-99", template=True, folder=old.ref, settings=settings())
    site = replace(site, vms=(*site.vms, twin), folders=(*site.folders, old))
    assert refused(cluster(1), site).code == "site.ambiguous"
    assert resolve(cluster(1, source=Source(template="old/ubuntu-22.04-gpu")), site).source is twin


def test_networks_of_one_name_are_told_apart_by_their_switch(golden: Golden) -> None:
    site = quad_8u3()
    site = replace(site, networks=(*site.networks, Network(ref=NetworkRef("n9"), name="roce", switch="dvs-b")))
    error = refused(cluster(1), site)
    assert (error.code, error.target) == ("site.ambiguous", "nodes.node-1.nic.port_group")
    golden(error)
    wanted = (node("node-1", nic=NicRequest(port_group="dvs-b/roce")),)
    assert resolve(cluster(wanted), site).networks["dvs-b/roce"].ref == "n9"


def test_globs_and_short_names_choose_hosts() -> None:
    resolved = resolve(cluster(1, location=replace(HERE, hosts=("esx-0[23]",))), quad_8u3())
    assert [host.name for host in resolved.hosts] == ["esx-02.lab.test", "esx-03.lab.test"]


def test_a_pin_to_a_host_that_is_left_out_is_refused(golden: Golden) -> None:
    spec = cluster(nodes(2, host="esx-01"), location=replace(HERE, hosts=("esx-02", "esx-03")))
    error = refused(spec, quad_8u3())
    assert (error.code, error.target) == ("site.not-found", "nodes.node-1.host")
    golden(error)


def test_a_linked_clone_needs_a_snapshot(golden: Golden) -> None:
    spec = seed_cluster(1)
    error = refused(replace(spec, source=replace(spec.source, clone=CloneKind.LINKED)), seed_7u2())
    assert error.code == "source.no-snapshot"
    golden(error)


def test_a_linked_clone_keeps_its_parents_disk_size(golden: Golden) -> None:
    site = quad_8u3()
    site = replace(site, vms=tuple(replace(vm, snapshot="snapshot-1") if vm.template else vm for vm in site.vms))

    def requirements_of(disk: Bytes | None, kind: CloneKind) -> ClusterSpec:
        spec = cluster(nodes(2, disk=disk))
        return replace(spec, source=replace(spec.source, clone=kind))

    error = refused(requirements_of(gib(80), CloneKind.LINKED), site)
    assert error.code == "source.linked-disk"
    golden(error)
    for spec in (
        requirements_of(gib(40), CloneKind.LINKED),
        requirements_of(None, CloneKind.LINKED),
        requirements_of(gib(80), CloneKind.FULL),
    ):
        assert resolve(spec, site).source.template


def test_a_bios_template_is_refused() -> None:
    site = quad_8u3(taken=False)
    bios = replace(site.vms[0], settings=settings(firmware="bios"))
    error = refused(cluster(1), replace(site, vms=(bios,)))
    assert error.code == "source.not-efi"


def test_a_nic_that_no_host_has_is_named_beside_what_else_is_wrong() -> None:
    nic = NicRequest(model="Foo", port_group="roce")
    error = refused(cluster(nodes(2, nic=nic), location=replace(HERE, datastore="vsna")), quad_8u3())
    keys = [each.partition(":")[0] for each in error.details]
    assert keys == ["location.datastore", "nodes.node-1.nic.model"]


IMAGES = ContentLibraries(
    names=("drivers", "images"),
    items=(
        LibraryItem(name="ubuntu", type="vm-template", vm=VmRef("vm-1")),
        LibraryItem(name="appliance", type="ovf", package=PACKAGE),
        LibraryItem(name="installer", type="iso"),
        LibraryItem(name="gone", type="vm-template", vm=VmRef("vm-999")),
    ),
)


def from_library(library: str, item: str) -> tuple[ClusterSpec, Inventory]:
    return cluster(1, source=Source(library=library, item=item)), replace(quad_8u3(), libraries=IMAGES)


def test_a_librarys_vm_template_is_the_template_behind_it() -> None:
    template = next(each for each in quad_8u3().vms if each.template)
    spec, site = from_library("images", "ubuntu")
    items = (LibraryItem(name="ubuntu", type="vm-template", vm=template.ref),)
    assert resolve(spec, replace(site, libraries=replace(IMAGES, items=items))).source == template


@pytest.mark.parametrize(
    ("library", "item", "code", "target", "hint"),
    [
        ("image", "ubuntu", "site.not-found", "source.library", 'set source.library = "images"'),
        ("images", "ubunto", "site.not-found", "source.item", 'set source.item = "ubuntu"'),
        ("images", "installer", "source.not-a-template", "source.item", "govc library.ls -l /images/"),
        ("images", "gone", "site.not-found", "source.item", "location.datacenter"),
    ],
)
def test_what_a_library_does_not_have_is_told(library: str, item: str, code: str, target: str, hint: str) -> None:
    error = refused(*from_library(library, item))
    assert (error.code, error.target) == (code, target)
    assert hint in error.hint


def test_an_ovf_template_is_the_clusters_own_template_once_it_was_deployed() -> None:
    spec, site = from_library("images", "appliance")
    wanted = resolve(spec, site).source
    assert (wanted.ref, wanted.name) == ("", "train-template-5eed5eed5eed")
    template = next(each for each in site.vms if each.template)
    deployed = replace(template, ref=VmRef("vm-77"), name=wanted.name, cluster_mark=spec.name, node_mark=wanted.name)
    others = (replace(deployed, cluster_mark="other"), replace(deployed, template=False))
    assert resolve(spec, replace(site, vms=(*site.vms, *others))).source.ref == ""
    assert resolve(spec, replace(site, vms=(*site.vms, *others, deployed))).source == deployed


def test_a_package_of_a_guest_that_boots_by_bios_is_refused_before_it_is_deployed() -> None:
    package = replace(PACKAGE, firmware="bios")
    error = refused(cluster(1, source=Source(ovf="u.ova")), replace(quad_8u3(), package=package))
    assert error.code == "source.not-efi"
