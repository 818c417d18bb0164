"""Every way to give a VM a GPU, on a lab whose hosts have them all: asked for in a file, given, and kept as it is."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.integration import labs
from vsphere_ml.cli.wiring.site_wiring import SystemClock
from vsphere_ml.config.load import load_text
from vsphere_ml.core.errors import NotPossible
from vsphere_ml.core.ports.vcenter import Scope
from vsphere_ml.flows.cluster.destroy import destroy
from vsphere_ml.flows.cluster.provision import provision
from vsphere_ml.flows.run_context import RunContext

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.flows.cluster.report import Report
    from vsphere_ml.vsphere.gateway import Gateway

pytestmark = pytest.mark.lab

CX7 = '{ model = "ConnectX-7", port_group = "roce" }'
PVRDMA = '{ kind = "pvrdma", port_group = "roce" }'
# The cluster, how many nodes its two hosts can take, the NIC, and what is asked for.
WAYS = {
    "switch8": ("hgx-h100", 2, CX7, '{ kind = "nvlink", profile = "H100XM-80C", count = 8 }'),
    "switch8a": ("hgx-a100", 2, labs.CX6, '{ kind = "nvlink", profile = "A100X-40C", count = 8 }'),
    "switch4": ("hgx-a100", 4, labs.CX6, '{ kind = "nvlink", profile = "A100X-40C", count = 4 }'),
    "switch2": ("hgx-a100", 8, labs.CX6, '{ kind = "nvlink", profile = "A100X-40C", count = 2 }'),
    "switch4h": ("hgx-h100", 4, CX7, '{ kind = "nvlink", profile = "H100XM-80C", count = 4 }'),
    "switch2h": ("hgx-h100", 8, CX7, '{ kind = "nvlink", profile = "H100XM-80C", count = 2 }'),
    "bridge": ("pairs", 4, labs.CX6, '{ kind = "nvlink", profile = "A100-40C", count = 2 }'),
    "whole": ("pairs", 8, labs.CX6, '{ profile = "A100-40C" }'),
    "half": ("pairs", 16, labs.CX6, '{ profile = "A100-20C" }'),
    "several": ("hgx-a100", 4, labs.CX6, '{ profile = "A100X-40C", count = 4 }'),
    "third": ("mig", 8, labs.CX6, '{ profile = "A100-3-20C" }'),
    "seventh": ("mig", 14, labs.CX6, '{ profile = "A100-1-5C", count = 2 }'),
    "sliced": ("mig", 8, labs.CX6, '{ profile = "A100-20C" }'),
    "mixed": ("mixed", 16, labs.CX6, '{ profile = "A100D-20C", count = 2 }'),
    "fixed": ("direct", 8, labs.CX6, '{ kind = "passthrough", device = "A100" }'),
    "pvrdma": ("pvrdma", 8, PVRDMA, '{ profile = "A100-40C" }'),
    "dynamic": ("direct", 8, labs.CX6, '{ kind = "dynamic-directpath", device = "10de:20f1" }'),
    "labelled": ("direct", 4, labs.CX6, '{ kind = "dynamic-directpath", device = "10de:20f1", label = "right" }'),
}


@pytest.fixture(scope="module")
def vcenter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with labs.running(tmp_path_factory.mktemp("state"), "spectrum-8.0u3") as lab:
        made = labs.gateway(lab)
        yield made
        made.close()


def make_spec(name: str, *, more: int = 0) -> ClusterSpec:
    cluster, count, nic, gpu = WAYS[name]
    text = labs.cluster_file(name, cluster=cluster, nodes=count + more, nic=nic, gpu=gpu)
    return load_text(text, "cluster.toml")


def brought(spec: ClusterSpec, vcenter: Gateway) -> Report:
    return provision(RunContext(spec, vcenter, lambda _: None, SystemClock()), approve=lambda _: True)


@pytest.mark.parametrize("name", WAYS)
def test_a_cluster_of_this_kind_is_made_to_the_last_gpu_and_stays(name: str, vcenter: Gateway) -> None:
    spec = make_spec(name)
    try:
        made = brought(spec, vcenter)
        assert made.done, made.error and made.error.details
        assert len({placement.host for placement in made.pending.placements}) == 2
        assert not brought(spec, vcenter).applied
    finally:
        assert destroy(RunContext(spec, vcenter, lambda _: None, SystemClock()), approve=lambda _: True).done


@pytest.mark.parametrize("name", WAYS)
def test_one_more_than_the_hosts_can_take_is_refused_before_anything_is_made(name: str, vcenter: Gateway) -> None:
    with pytest.raises(NotPossible) as refusal:
        brought(make_spec(name, more=1), vcenter)
    assert refusal.value.code == "placement.infeasible"
    assert not [vm for vm in vcenter.read_site(Scope(owner=name)).vms if vm.cluster_mark == name]


def test_sizes_are_mixed_on_a_gpu_where_the_host_mixes_them(vcenter: Gateway) -> None:
    large = make_spec("mixed")
    small, first = (
        load_text(labs.cluster_file(name, cluster="mixed", nodes=2, gpu=f'{{ profile = "{profile}" }}'), "cluster.toml")
        for name, profile in (("beside", "A100D-10C"), ("mixed", "A100D-20C"))
    )
    try:
        assert brought(first, vcenter).done
        assert brought(small, vcenter).done
        site = vcenter.read_site(Scope(cluster="mixed", owner="mixed"))
        users = Counter(len(gpu.used_by) for host in site.hosts for gpu in host.gpus if host.name.startswith("mixed"))
        assert users[2] == 2, "both sizes on the first GPU of each host, which consolidates"
    finally:
        for spec in (small, large):
            destroy(RunContext(spec, vcenter, lambda _: None, SystemClock()), approve=lambda _: True)
