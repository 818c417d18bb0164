"""What of a site a new cluster file can name."""

from __future__ import annotations

from dataclasses import replace

from tests.fakes.pictures import CLUSTER, quad_8u3
from vsphere_ml.core.model.inventory import GpuUse, Inventory, VmRef
from vsphere_ml.core.report import file_choices
from vsphere_ml.core.report.file_choices import GpuChoice


def held(site: Inventory) -> Inventory:
    """Return the site with every GPU in use."""
    use = (GpuUse(vm=VmRef("vm-9"), vm_name="other", profile="grid_a100-40c"),)
    hosts = (replace(host, gpus=tuple(replace(gpu, used_by=use) for gpu in host.gpus)) for host in site.hosts)
    return replace(site, hosts=tuple(hosts))


def test_a_cluster_is_offered_with_the_largest_profile_and_its_nics() -> None:
    (found,) = file_choices.gpu_clusters(quad_8u3())
    assert found.gpus == (GpuChoice(kind="vgpu", profile="A100-40C"),)
    assert found.nic_models == ("ConnectX-6 Dx",)
    ours = [gpu for host in quad_8u3().hosts if host.cluster == CLUSTER for gpu in host.gpus]
    assert found.free_gpus == len([gpu for gpu in ours if not gpu.used_by]) == len(ours) - 1


def test_a_cluster_whose_gpus_are_held_is_not_offered() -> None:
    assert file_choices.gpu_clusters(held(quad_8u3())) == ()


def test_hosts_in_maintenance_mode_offer_nothing() -> None:
    site = quad_8u3()
    away = replace(site, hosts=tuple(replace(host, maintenance=True) for host in site.hosts))
    assert file_choices.gpu_clusters(away) == ()


def test_a_name_that_a_cluster_or_vm_has_is_not_taken_twice() -> None:
    site = quad_8u3()
    (one, *others) = site.vms
    taken = replace(site, vms=(replace(one, name="node-01", cluster_mark="train"), *others))
    assert (file_choices.cluster_name(site), file_choices.node_prefix(site)) == ("train", "node-")
    assert (file_choices.cluster_name(taken), file_choices.node_prefix(taken)) == ("train2", "node2-")


def test_only_what_all_hosts_reach_is_offered() -> None:
    site = quad_8u3()
    (cluster,) = file_choices.gpu_clusters(site)
    lonely = replace(cluster, hosts=(*cluster.hosts[1:], replace(cluster.hosts[0], datastores=frozenset())))
    assert file_choices.datastores(site, cluster)
    assert file_choices.datastores(site, lonely) == ()
