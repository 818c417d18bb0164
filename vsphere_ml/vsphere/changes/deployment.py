"""Deploys a template from an OVF package: a file that is uploaded from here, or an item that vCenter has in a library.

Rule: vSphere API, `ResourcePool.ImportVApp`: vCenter makes the VM and hands out a lease with an address for each disk;
an import that is aborted, or whose lease nobody renews, is removed by vCenter itself.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote, urlsplit

from pyVmomi import vim, vmodl

from vsphere_ml.core.errors import VsmlError, VSphereError
from vsphere_ml.core.model.marks import CLUSTER_KEY, NODE_KEY, TEMPLATE_KEY, deployment_note
from vsphere_ml.core.plan.describe import clip
from vsphere_ml.vsphere.changes.task_runner import AwaitedState, StepProgress
from vsphere_ml.vsphere.inventory.collect import managed_object

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from vsphere_ml.core.plan.changes import DeployTemplate
    from vsphere_ml.vsphere.changes.site import Site
    from vsphere_ml.vsphere.connection.session import Session
    from vsphere_ml.vsphere.storage.ovf import Package

    Made = Generator[AwaitedState | StepProgress, Any, Any]

_DEPLOY = "/rest/com/vmware/vcenter/ovf/library-item/id:{}?~action=deploy"
_RENEWED_S = 10.0  # between two signs of life; vCenter waits for `leaseTimeout`, 300 s where nobody has changed it
_LONGEST_S = 86_400.0  # vCenter answers a deployment from a library when it has ended
_PAUSE_S = 0.2
_READY, _ERROR = "ready", "error"


def marks(change: DeployTemplate) -> list[Any]:
    """Return the extra config by which a template, and one that is not finished, is known to be ours."""
    keys = {CLUSTER_KEY: change.marks.cluster, NODE_KEY: change.name, TEMPLATE_KEY: change.name}
    return [vim.option.OptionValue(key=key, value=value) for key, value in keys.items()]


def import_package(session: Session, site: Site, change: DeployTemplate) -> Made:
    """Import a file of this machine, and return the VM. Nothing is left of an import that is given up on the way."""
    package = site.packages[change.package.digest]
    pool = managed_object(session, "vim.ResourcePool", change.pool)
    made = _import_spec(session, site, change, package)
    config = made.importSpec.configSpec
    config.extraConfig = [*(config.extraConfig or ()), *marks(change)]
    config.annotation = deployment_note(change.marks.cluster, change.name)
    folder, host = site.folder(change.folder), managed_object(session, "vim.HostSystem", change.host)
    lease = session.write(lambda: pool.ImportVApp(spec=made.importSpec, folder=folder, host=host))
    state = yield AwaitedState(lease, ("state",), (_READY, _ERROR))
    if state != _READY:
        raise session.read(lambda: lease.error) or _refusal(change, "vCenter does not say why")
    info = session.read(lambda: lease.info)
    try:
        yield from _upload(session, lease, _addresses(change, info, made.fileItem or (), package), package)
        session.write(lease.HttpNfcLeaseComplete)
    except BaseException:
        with suppress(VsmlError, vmodl.MethodFault):
            session.write(lambda: lease.HttpNfcLeaseAbort(fault=None))
        raise
    return info.entity


def _import_spec(session: Session, site: Site, change: DeployTemplate, package: Package) -> Any:
    """Return what vCenter makes of the descriptor; VSphereError `ovf.refused` with all that it does not take."""
    network = managed_object(session, site.network_type(change.network), change.network)
    mapped = [vim.OvfManager.NetworkMapping(name=each, network=network) for each in package.networks]
    asked: Any = vim.OvfManager.CreateImportSpecParams
    made = session.read(
        lambda: session.content.ovfManager.CreateImportSpec(
            ovfDescriptor=package.descriptor.decode(errors="replace"),
            resourcePool=managed_object(session, "vim.ResourcePool", change.pool),
            datastore=managed_object(session, "vim.Datastore", change.datastore),
            cisp=asked(
                locale="",
                deploymentOption="",
                entityName=change.name,
                hostSystem=managed_object(session, "vim.HostSystem", change.host),
                networkMapping=mapped,
                diskProvisioning="thin",
            ),
        )
    )
    if made.error or made.importSpec is None:
        raise _refusal(change, *[clip(each.msg or type(each).__name__, 200) for each in made.error or ()])
    return made


def _addresses(change: DeployTemplate, info: Any, items: Sequence[Any], package: Package) -> list[tuple[Any, Any]]:
    """Return the files that vCenter wants, each with its address."""
    known = {each.importKey: each for each in info.deviceUrl or ()}
    if missing := [each.path for each in items if each.deviceId not in known or each.path not in package.files]:
        raise _refusal(change, f"it has no address for {clip(missing[0], 200)}")
    return [(each, known[each.deviceId]) for each in items]


def _upload(session: Session, lease: Any, wanted: Sequence[tuple[Any, Any]], package: Package) -> Made:
    """Send each file to its address, and yield how far that is; the lease is kept alive meanwhile."""
    total = sum(package.files[item.path].size for item, _ in wanted) or 1
    sent, renewed = 0, time.monotonic()
    for item, address in wanted:
        size = package.files[item.path].size
        with _Upload(session, address.url, address.sslThumbprint, size, creates=bool(item.create)) as upload:
            for part in package.parts(item.path):
                upload.send(part)
                sent += len(part)
                percent = sent * 100 // total
                if time.monotonic() - renewed > _RENEWED_S:
                    renewed = time.monotonic()
                    session.read(partial(lease.HttpNfcLeaseProgress, percent))
                yield StepProgress(percent)
            upload.finish()


class _Upload:
    """One file on its way to the host that has the datastore, or to vCenter, which hands it on.

    As govc and ovftool do it: a disk is posted as a stream-optimized VMDK, another file is put. The address itself is
    what admits to it, so no session's cookie goes to a host.
    """

    def __init__(self, session: Session, address: str, thumbprint: str | None, size: int, *, creates: bool) -> None:
        url = urlsplit(address)
        self._place = url.hostname or "*"
        self._connection = session.upload_connection(self._place, url.port or 443, thumbprint)
        self._headers = {"Content-Length": str(size)}
        self._headers |= {"Overwrite": "t"} if creates else {"Content-Type": "application/x-vnd.vmware-streamVmdk"}
        self._method, self._path, self._begun = "PUT" if creates else "POST", url.path, False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._connection.close()

    def send(self, part: bytes) -> None:
        try:
            if not self._begun:
                self._begin()
            self._connection.renew()
            self._connection.send(part)
        except (OSError, HTTPException) as error:
            raise self._broken(str(error)) from error

    def _begin(self) -> None:
        self._begun = True
        self._connection.connect()
        self._connection.putrequest(self._method, self._path)
        for name, value in self._headers.items():
            self._connection.putheader(name, value)
        self._connection.endheaders()

    def finish(self) -> None:
        """Read the answer; VSphereError `ovf.upload` for anything but success."""
        try:
            if not self._begun:
                self._begin()
            self._connection.renew()
            status = self._connection.getresponse().status
        except (OSError, HTTPException) as error:
            raise self._broken(str(error)) from error
        if status >= HTTPStatus.BAD_REQUEST:
            raise self._broken(f"HTTP status {status}")

    def _broken(self, why: str) -> VSphereError:
        return VSphereError(
            f"the upload to {self._place} broke off: {clip(why, 200)}",
            code="ovf.upload",
            target=self._place,
            hint="it goes to port 443 of the hosts: let this machine reach them, or put it into a content library",
        )


def deploy_item(session: Session, site: Site, change: DeployTemplate) -> Made:
    """Have vCenter deploy an item of a library, and return the VM. Its notes are its mark until it has the others."""
    asked = {
        "target": {
            "resource_pool_id": change.pool,
            "host_id": change.host,
            "folder_id": site.folder(change.folder)._GetMoId(),  # noqa: SLF001 - pyvmomi's only accessor
        },
        "deployment_spec": {
            "name": change.name,
            "annotation": deployment_note(change.marks.cluster, change.name),
            "accept_all_EULA": False,
            "default_datastore_id": change.datastore,
            "storage_provisioning": "thin",
        },
    }
    call = _Call(session, _DEPLOY.format(quote(change.package.item)), asked)
    call.start()
    while call.is_alive():
        yield StepProgress(None)
        call.join(_PAUSE_S)
    made = call.answer()
    if not made.get("succeeded"):
        raise _refusal(change, *_messages(made.get("error")))
    vm = managed_object(session, "vim.VirtualMachine", str(made["resource_id"]["id"]))
    yield AwaitedState(session.write(lambda: vm.ReconfigVM_Task(spec=vim.vm.ConfigSpec(extraConfig=marks(change)))))
    return vm


class _Call(threading.Thread):
    """One call of the REST API that lasts as long as its work does. It keeps no process from ending."""

    def __init__(self, session: Session, path: str, asked: Any) -> None:
        super().__init__(daemon=True, name="vcenter-deployment")
        self._session, self._path, self._asked = session, path, asked
        self._answer: Any = None
        self._error: Exception | None = None

    def run(self) -> None:
        try:
            with self._session.rest(timeout_s=_LONGEST_S) as api:
                self._answer = api.post(self._path, self._asked)["value"]
        except (OSError, HTTPException, ValueError, KeyError, TypeError) as error:
            self._error = error

    def answer(self) -> Any:
        if self._error is not None or not isinstance(self._answer, dict):
            raise VSphereError(
                f"vCenter did not say whether the deployment ended well: {clip(str(self._error), 200)}",
                code="library.unreadable",
                target="source.item",
                hint="see vCenter's recent tasks; when it has ended, run the same command again",
            ) from self._error
        return self._answer


def _messages(error: Any) -> list[str]:
    """Return what vCenter says in the errors of a deployment (vSphere Automation API, `LibraryItem.ResultInfo`)."""
    found: list[str] = []
    for each in (error or {}).get("errors") or ():
        texts = [each.get("message"), *((each.get("error") or {}).get("messages") or ())]
        found += [clip(str(text["default_message"]), 200) for text in texts if text and text.get("default_message")]
    return found


def _refusal(change: DeployTemplate, *why: str) -> VSphereError:
    return VSphereError(
        f"vCenter cannot deploy {change.package.name}" + (f": {why[0]}" if why else ""),
        code="ovf.refused",
        target=change.name,
        details=tuple(why[1:]),
        hint="deploy it once in the vSphere Client, which asks what it needs, and set source.template to that",
    )
