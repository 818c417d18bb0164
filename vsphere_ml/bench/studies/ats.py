"""Before and after `vsml enable-ats`: the same launches with PCIe ATS off and on in the guests' NICs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.bench.model.record import Workload
from vsphere_ml.bench.model.transports import Transport
from vsphere_ml.bench.studies.study_design import Factor, StudyDesign

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vsphere_ml.bench.probe.survey import Surveyed
    from vsphere_ml.core.model.spec import ClusterSpec

OFF, ON = "off", "on"


def find_level(_spec: ClusterSpec, surveyed: Sequence[Surveyed]) -> str:
    """Return whether ATS is on in every guest; empty where a guest's lspci shows no NIC with the capability."""
    seen = [each.ats for each in surveyed]
    if False in seen:
        return OFF
    return ON if seen and None not in seen else ""


DESIGN = StudyDesign(
    name="ats",
    question="what PCIe ATS on hosts, NICs and VMs brings",
    transports=(Transport.TCP, Transport.ROCE, Transport.GPUDIRECT),
    factor=Factor(
        option="ats",
        title="ATS",
        levels=(OFF, ON),
        find_level=find_level,
        unknown=(
            "whether ATS is on is not known: lspci in a guest shows no NIC of NVIDIA's with the capability",
            "`vsml verify` shows each node's NIC; its fact ATS is what is read here",
        ),
        change={OFF: "vsml enable-ats {file} --revert", ON: "vsml enable-ats {file}"},
    ),
    workloads=(Workload.MEMCPY, Workload.NCCL, Workload.TRAIN),
)
