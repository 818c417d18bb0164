"""Reads a site for `vsml doctor --record`, and writes its record into a folder of its own."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING

from vsphere_ml.core.errors import ConfigError, VsmlError
from vsphere_ml.core.site_record.exchanges import SiteRecord

if TYPE_CHECKING:
    from pathlib import Path

    from vsphere_ml.cli.terminal import Terminal
    from vsphere_ml.config.secrets.sign_in import SignIn
    from vsphere_ml.core.model.inventory import Inventory
    from vsphere_ml.core.model.spec import ClusterSpec
    from vsphere_ml.core.site_record.redact_soap import SoapRedactor
    from vsphere_ml.flows.site.record import SiteReader


def check_folder(folder: Path) -> None:
    """Refuse a folder that has anything in it; ConfigError `site.record-exists`."""
    if folder.is_dir() and not any(folder.iterdir()):
        return
    if folder.exists() or folder.is_symlink():
        raise ConfigError(
            f"{folder} is there already",
            code="site.record-exists",
            target=str(folder),
            hint="name a folder that is not there yet, or an empty one",
        )


def read_site(
    to: SignIn, terminal: Terminal, datacenter: str | None, spec: ClusterSpec | None
) -> tuple[SiteRecord, SoapRedactor]:
    """Return all that the site answers, redacted, and what was counted of it. Raises VSphereError at the sign-in."""
    from vsphere_ml.cli.wiring import site_wiring
    from vsphere_ml.core.site_record.pseudonyms import Pseudonyms
    from vsphere_ml.core.site_record.redact_soap import SoapRedactor
    from vsphere_ml.core.site_record.redact_text import TextRedactor
    from vsphere_ml.flows.site.record import SiteReader
    from vsphere_ml.vsphere.connection.recorder import Recorder
    from vsphere_ml.vsphere.esxi.esx_hosts import EsxHosts
    from vsphere_ml.vsphere.gateway import Gateway
    from vsphere_ml.vsphere.privileges import missing_privileges

    pseudonyms = Pseudonyms()
    recorder, reader = Recorder(SoapRedactor(pseudonyms)), SiteReader(TextRedactor(pseudonyms))
    with site_wiring.session(to, terminal.settings, recorder) as session:
        api_version = session.api_version
        missing_privileges(session)
        vcenter = Gateway(session, site_wiring.cache() / "datastores")
        inventory = reader.read_vcenter(vcenter, EsxHosts(session), datacenter)
    if inventory is not None and spec is not None:
        _read_machines(reader, inventory, spec)
    record = SiteRecord(
        vsml=version("vsml"),
        api_version=api_version,
        recorded=datetime.now(UTC).date().isoformat(),
        soap=tuple(recorder.exchanges),
        commands=tuple(reader.commands),
        gaps=tuple(reader.gaps),
    )
    return record, recorder.redactor


def _read_machines(reader: SiteReader, inventory: Inventory, spec: ClusterSpec) -> None:
    """Ask the hosts and guests that the cluster file gives access to."""
    from vsphere_ml.cli.wiring import guest_wiring, host_wiring, site_wiring
    from vsphere_ml.core.model.spec import GuestAccess
    from vsphere_ml.flows.guests.guests import find

    with host_wiring.shells(spec) as shells:
        if shells is not None:
            reader.read_hosts([host.name for host in inventory.hosts if host.gpus], shells)
    if spec.guest == GuestAccess():
        return
    try:
        places = find(spec, inventory).places
        reader.read_guests(places, guest_wiring.guests(spec, site_wiring.SystemClock()))
    except VsmlError as error:
        reader.gaps.append(f"guests: {error.code}")


def write(folder: Path, record: SiteRecord) -> None:
    """Write a record's files; ConfigError `file.unwritable`."""
    try:
        for path, text in record.files().items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"{folder} cannot be written: {error.strerror}", code="file.unwritable", target=str(folder)
        ) from error
