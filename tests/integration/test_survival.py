"""The lab vCenter answers on, whatever clients send, and gives no GPU twice."""

from __future__ import annotations

import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from pyVmomi import vim, vmodl

from tests.integration import labs
from tests.integration.hostile import Client, envelope
from tests.waiting import until
from vsphere_ml.lab import state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vsphere_ml.lab.state import Lab
    from vsphere_ml.vsphere.connection.session import Session

pytestmark = pytest.mark.lab

FREE_GPUS = 15  # four hosts with four each, and etl-7 has one
DEEP = 20_000
LAUGHS = '<!DOCTYPE a [<!ENTITY b "ha"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>'
GARBAGE: dict[str, str | bytes] = {
    "nothing": "",
    "no XML": "GET / HTTP/1.1",
    "zeros": b"\0" * 4096,
    "bytes that are no UTF-8": b"\xff\xfe" * 100,
    "cut off": envelope("<RetrieveServiceContent")[:-40],
    "no body": '<Envelope xmlns="http://schemas.xmlsoap.org/soap/envelope/"/>',
    "an empty body": envelope(""),
    "text for a body": envelope("hello"),
    "a type for a method": envelope('<ManagedObjectReference xmlns="urn:vim25"/>'),
    "nobody's method": envelope('<Frobnicate xmlns="urn:vim25"><_this type="Folder">group-v3</_this></Frobnicate>'),
    "a method of nobody": envelope('<CloneVM_Task xmlns="urn:vim25"/>'),
    "entities": LAUGHS + envelope('<CurrentTime xmlns="urn:vim25">&c;</CurrentTime>'),
    "deep": envelope("<a>" * DEEP + "</a>" * DEEP),
    "an attribute without end": envelope('<CurrentTime xmlns="' + "x" * 1_000_000 + '"/>'),
}


@pytest.fixture(autouse=True)
def answers_on(lab: Lab) -> Iterator[None]:
    """Hold after each test that the same process still answers, at once, what it holds."""
    yield
    running = state.running_lab(lab.name)
    assert running.pid == lab.pid
    session = labs.sign_in(lab, timeout_s=60)
    try:
        assert machine(session, "etl-7").runtime.powerState == "poweredOn"
    finally:
        session.close()


@pytest.fixture
def session(lab: Lab) -> Iterator[Session]:
    made = labs.sign_in(lab, timeout_s=60)
    yield made
    made.close()


@pytest.mark.parametrize("body", GARBAGE.values(), ids=GARBAGE.keys())
@pytest.mark.parametrize("signed_in", [False, True])
def test_garbage_is_refused(lab: Lab, body: str | bytes, *, signed_in: bool) -> None:
    client = Client(lab).sign_in() if signed_in else Client(lab)
    assert client.post(body).status >= 400


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", "FROB"])
@pytest.mark.parametrize("path", ["/sdk", "/", "/../../etc/passwd", "/lab/status", "/folder/x?dsName=vsan", "/nfc/x/y"])
def test_no_path_gives_anything_away(lab: Lab, path: str, method: str) -> None:
    assert Client(lab).post(b"", path, method).status >= 300  # Go redirects to a path without dots


def test_a_request_without_end_is_cut_off(lab: Lab) -> None:
    """The server need not take all of it, nor keep the connection."""
    endless = envelope("<CurrentTime>" + "x" * (70 << 20) + "</CurrentTime>")
    try:
        assert Client(lab).post(endless).status >= 400
    except OSError as error:
        assert isinstance(error, ConnectionError | ssl.SSLError), error  # noqa: PT017 - either is a refusal


def test_half_a_request_keeps_nobody_waiting(lab: Lab) -> None:
    host, port = lab.address.split(":")
    context = ssl.create_default_context(cafile=lab.ca_file)
    with (
        socket.create_connection((host, int(port))) as plain,
        context.wrap_socket(plain, server_hostname=host) as half,
    ):
        half.sendall(b"POST /sdk HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n<half")
        assert Client(lab).call("CurrentTime", ("ServiceInstance", "ServiceInstance")).status == 500  # not signed in


def test_numbers_that_are_none(lab: Lab, session: Session) -> None:
    client = Client(lab).sign_in()
    etl = ("VirtualMachine", machine(session, "etl-7")._moId)
    for value in ("lots", "99999999999999999999", "-1", "1e9", ""):
        refused = client.call("ReconfigVM_Task", etl, f"<spec><numCPUs>{value}</numCPUs></spec>")
        assert refused.status in {200, 500}
    assert machine(session, "etl-7").config.hardware.numCPU == 8


@pytest.mark.parametrize("datastore", ["[nowhere]", "[nowhere] a/a.vmx", "[]", "vsan", "[vsan", "", "[vsan] ../../x"])
def test_datastores_that_are_not_there(session: Session, datastore: str) -> None:
    spec = bare("lost")
    spec.files = vim.vm.FileInfo(vmPathName=datastore)
    assert asked(session, lambda: folder(session).CreateVM_Task(spec, pool(session), None)) != "success"
    browser = machine(session, "etl-7").datastore[0].browser
    if datastore not in {"", "vsan"}:
        assert asked(session, lambda: browser.SearchDatastore_Task(datastore, None)) != "success"


@pytest.mark.parametrize("key", ["SET.no.such", "SET.", "SET.config.hardware.numCPU", "SET.runtime", "RUN.container"])
def test_keys_that_command_the_simulator_are_kept_as_keys(session: Session, key: str) -> None:
    extra = [vim.option.OptionValue(key=key, value="1")]
    spec = bare("keyed")
    spec.extraConfig = extra
    assert outcome(session, folder(session).CreateVM_Task(spec, pool(session), None)) == "success"
    made = machine(session, "keyed")
    assert outcome(session, made.ReconfigVM_Task(vim.vm.ConfigSpec(extraConfig=extra))) == "success"
    assert key in {option.key for option in made.config.extraConfig}
    assert made.config.hardware.numCPU == 2
    assert outcome(session, made.Destroy_Task()) == "success"


def test_a_long_text_reads_back_whole(session: Session) -> None:
    spec = bare("verbose")
    spec.annotation = "é" * (4 << 20)
    assert outcome(session, folder(session).CreateVM_Task(spec, pool(session), None)) == "success"
    assert machine(session, "verbose").config.annotation == spec.annotation
    assert outcome(session, machine(session, "verbose").Destroy_Task()) == "success"


def test_eight_clients_and_their_nonsense_never_overbook(lab: Lab) -> None:
    with ThreadPoolExecutor(8) as clients:
        started = list(clients.map(lambda number: trample(lab, number), range(8)))
    session = labs.sign_in(lab)
    try:
        hosts = found(session, vim.HostSystem)
        holders = [gpu.vm for host in hosts for gpu in host.config.graphicsInfo]
        assert all(len(vms) <= 1 for vms in holders), "a full-GPU profile shares its GPU"
        assert sum(len(vms) for vms in holders) == 1 + sum(started)
        assert sum(started) == FREE_GPUS
        for each in found(session, vim.VirtualMachine):
            if each.name.startswith("trample-"):
                if each.runtime.powerState == "poweredOn":
                    outcome(session, each.PowerOffVM_Task())
                outcome(session, each.Destroy_Task())
    finally:
        session.close()


def trample(lab: Lab, number: int) -> int:
    """Return how many of four VMs with a whole GPU each run in the end, after much stopping, starting and nonsense."""
    session, client = labs.sign_in(lab, timeout_s=60), Client(lab).sign_in()
    try:
        running = 0
        for each in range(4):
            spec = gpu_spec(f"trample-{number}-{each}")
            assert outcome(session, folder(session).CreateVM_Task(spec, pool(session), None)) == "success"
            made = machine(session, spec.name)
            for _ in range(3):
                client.post(list(GARBAGE.values())[number])
                client.call("Destroy_Task", ("Folder", "group-d1"))
                if outcome(session, made.PowerOnVM_Task(None)) == "success":
                    outcome(session, made.PowerOffVM_Task())
        for each in range(4):
            name = f"trample-{number}-{each}"
            candidates = found(session, vim.HostSystem)
            running += any(
                outcome(session, machine(session, name).PowerOnVM_Task(host)) == "success" for host in candidates
            )
        return running
    finally:
        session.close()


def found(session: Session, kind: Any) -> list[Any]:
    view = session.content.viewManager.CreateContainerView(session.content.rootFolder, [kind], recursive=True)
    try:
        return list(view.view)
    finally:
        view.Destroy()


def machine(session: Session, name: str) -> Any:
    return session.content.searchIndex.FindByInventoryPath(f"lab-dc/vm/{name}")


def folder(session: Session) -> Any:
    return session.content.searchIndex.FindByInventoryPath("lab-dc/vm")


def pool(session: Session) -> Any:
    return session.content.searchIndex.FindByInventoryPath("lab-dc/host/gpu").resourcePool


def bare(name: str) -> Any:
    files = vim.vm.FileInfo(vmPathName="[vsan]")
    return vim.vm.ConfigSpec(
        name=name, guestId="ubuntu64Guest", version="vmx-20", numCPUs=2, memoryMB=1024, files=files
    )


def gpu_spec(name: str) -> Any:
    spec = bare(name)
    backing = vim.vm.device.VirtualPCIPassthrough.VmiopBackingInfo(vgpu="grid_a100-40c")
    device = vim.vm.device.VirtualPCIPassthrough(key=-1, backing=backing)
    spec.deviceChange = [vim.vm.device.VirtualDeviceSpec(operation="add", device=device)]
    spec.firmware, spec.memoryReservationLockedToMax = "efi", True
    space = {"pciPassthru.use64bitMMIO": "TRUE", "pciPassthru.64bitMMIOSizeGB": "128"}
    spec.extraConfig = [vim.option.OptionValue(key=key, value=value) for key, value in space.items()]
    return spec


def asked(session: Session, ask: Callable[[], Any]) -> str:
    """Return how a task ended, or the name of the fault that kept it from beginning."""
    try:
        return outcome(session, ask())
    except vmodl.MethodFault as fault:
        return type(fault).__name__


def outcome(session: Session, task: Any) -> str:
    """Return how a task ended: `success`, or the name of its fault."""
    until(lambda: task.info.state in {"success", "error"}, lambda: f"{task.info.descriptionId} does not end")
    info = task.info
    return "success" if info.state == "success" else type(info.error).__name__
