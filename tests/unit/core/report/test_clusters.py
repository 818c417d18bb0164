"""Which clusters a site has, by what carries their marks."""

from __future__ import annotations

from dataclasses import replace

from tests.fakes.pictures import quad_8u3, vm
from tests.fakes.requirements import cluster
from tests.unit.core.sites import changed, provisioned
from vsphere_ml.core.model.inventory import Folder, FolderRef
from vsphere_ml.core.report.clusters import list_clusters


def test_a_cluster_is_told_with_its_nodes_hosts_and_gpus() -> None:
    site = changed(provisioned(cluster(3), quad_8u3()), "node-2", powered_on=False)
    (found,) = list_clusters(site)
    assert (found.name, found.nodes, found.running, found.gpus) == ("train", ("node-1", "node-2", "node-3"), 2, 2)
    assert len(found.hosts) == 2
    assert not found.locked


def test_vms_of_others_templates_and_copies_are_no_nodes() -> None:
    site = provisioned(cluster(1), quad_8u3())
    more = (
        vm("theirs", "vm-90"),
        vm("node-1-copy", "vm-91", cluster_mark="train", node_mark="node-1"),
        vm("golden", "vm-92", cluster_mark="train", node_mark="golden", template=True),
        vm("other-1", "vm-93", cluster_mark="other", node_mark="other-1"),
    )
    found = list_clusters(replace(site, vms=(*site.vms, *more)))
    assert [(each.name, each.nodes) for each in found] == [("other", ("other-1",)), ("train", ("node-1",))]


def test_a_lock_and_an_empty_folder_are_told() -> None:
    site = quad_8u3()
    folders = (
        Folder(ref=FolderRef("group-v90"), path="train", cluster_mark="train"),
        Folder(ref=FolderRef("group-v91"), path="vsml-lock-train", cluster_mark="train"),
    )
    (found,) = list_clusters(replace(site, folders=(*site.folders, *folders)))
    assert (found.name, found.nodes, found.folders, found.locked) == ("train", (), ("train",), True)
