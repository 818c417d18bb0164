"""What commands show of a vCenter's connection, of a record of it, of its hosts, and of the file made for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tests.fakes import pictures
from tests.fakes.requirements import cluster
from tests.fakes.site import FakeVCenter
from tests.unit.cli.views.site.test_doctor import FOUND
from vsphere_ml.cli.cluster.file_questions import NewFile
from vsphere_ml.cli.views.cluster import nodes, templates
from vsphere_ml.cli.views.site import doctor, new_file, record, tree
from vsphere_ml.cli.wiring.site_wiring import SystemClock
from vsphere_ml.config.starter import StarterAnswers
from vsphere_ml.core.report.file_choices import GpuChoice
from vsphere_ml.core.site_record.exchanges import CommandExchange, SiteRecord, SoapExchange
from vsphere_ml.core.site_record.pseudonyms import Pseudonyms
from vsphere_ml.core.site_record.redact_soap import SoapRedactor
from vsphere_ml.flows.cluster.template import check_template
from vsphere_ml.flows.run_context import RunContext

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import RenderableType

SPEC = cluster(2)
CALL = "<e:Envelope xmlns:e='urn:e'><e:Body><{0}/></e:Body></e:Envelope>"
METHODS = ("RetrieveServiceContent", "RetrievePropertiesEx", "RetrievePropertiesEx", "QueryOptions")


def doctors_checks() -> RenderableType:
    found = replace(FOUND, server="vcenter-01.datacenter-west.example.com", ca_file=Path("/etc/ssl/vcenter/ca.pem"))
    missing = ("VirtualMachine.Config.AddRemoveDevice", "VirtualMachine.Interact.PowerOn", "Folder.Create")
    signed_in = doctor.sign_in_checks(found, "VMware vCenter Server 8.0.3 build-24022515", "8.0.3.0")
    return doctor.text([*doctor.sources(found, doctor.password(found)), *signed_in, doctor.privileges(missing)])


def recorded() -> RenderableType:
    soap = tuple(SoapExchange(request=CALL.format(each), response=CALL.format(each)) for each in METHODS)
    command = CommandExchange(
        where="hosts", machine="host-0001", name="kernel options", command="esxcli system", status=0, out="x", err=""
    )
    gap = "host-0002: SSH on the host: it is not running, and the cluster file names no password for it"
    made = SiteRecord(
        vsml="1.0", api_version="8.0.3.0", recorded="2026-11-27", soap=soap, commands=(command,), gaps=(gap,)
    )
    return record.text(made, SoapRedactor(Pseudonyms(b"key")), fields=False)


def written_file() -> RenderableType:
    answers = StarterAnswers(
        name="train",
        vcenter={"server": "vcenter-01.example.com"},
        datacenter="dc-1",
        cluster="gpu",
        datastore="vsan",
        template="ubuntu-22.04-gpu",
        network="vm-mgmt",
        gpu=GpuChoice(kind="vgpu", profile="A100-40C"),
        nic_model="ConnectX-6 Dx",
        nic_network="roce",
        prefix="node",
        nodes=4,
        cpus=16,
        memory_gib=128,
    )
    return new_file.text(Path("clusters/train.toml"), NewFile(answers=answers, most=8))


def template() -> RenderableType:
    facts = check_template(RunContext(SPEC, FakeVCenter(pictures.quad_8u3()), lambda _: None, SystemClock()))
    return templates.text(nodes.text(SPEC), facts)


SCREENS: dict[str, Callable[[], RenderableType]] = {
    "check --template": template,
    "doctor": doctors_checks,
    "doctor --record": recorded,
    "init": written_file,
    "topology": lambda: tree.text(pictures.quad_8u3(hosts=1)),
}
