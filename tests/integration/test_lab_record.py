"""A record of a site, given again by a lab, and the lab's own answers held against what real sites answer."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.fakes.record_shape import differences, list_records, list_shapes, shape_of, shape_of_folder
from tests.integration.labs import running
from vsphere_ml.core.errors import VsmlError
from vsphere_ml.core.ports.vcenter import Scope
from vsphere_ml.core.site_record.exchanges import CommandExchange, SiteRecord
from vsphere_ml.core.site_record.pseudonyms import Pseudonyms
from vsphere_ml.core.site_record.redact_soap import SoapRedactor
from vsphere_ml.core.site_record.redact_text import TextRedactor
from vsphere_ml.core.tools import mft
from vsphere_ml.flows.site.record import SiteReader
from vsphere_ml.lab import hosts, server
from vsphere_ml.ssh.esxi import EsxiShells
from vsphere_ml.vsphere.connection import session
from vsphere_ml.vsphere.connection.recorder import Recorder
from vsphere_ml.vsphere.connection.tls import Trust
from vsphere_ml.vsphere.esxi.esx_hosts import EsxHosts
from vsphere_ml.vsphere.gateway import Gateway

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from vsphere_ml.core.model.inventory import Inventory
    from vsphere_ml.lab.state import Lab


def record(lab: Lab) -> tuple[SiteRecord, Inventory]:
    """Return a record of a lab, as `vsml doctor --record` makes it, and the inventory that was read."""
    pseudonyms = Pseudonyms()
    recorder, reader = Recorder(SoapRedactor(pseudonyms)), SiteReader(TextRedactor(pseudonyms))
    signed_in = session.connect(lab.address, lab.username, lab.password(), Trust(ca_file=lab.ca_file), log=recorder)
    inventory = reader.read_vcenter(Gateway(signed_in), EsxHosts(signed_in), None)
    signed_in.close()
    assert reader.gaps == []
    assert inventory is not None
    made = SiteRecord(vsml="0.1.0", api_version=lab.api_version, recorded="2026-01-31", soap=tuple(recorder.exchanges))
    return made, inventory


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with running(tmp_path_factory.mktemp("state")) as started:
        yield started


@pytest.fixture(scope="module")
def recorded(lab: Lab) -> tuple[SiteRecord, Inventory]:
    return record(lab)


def test_a_lab_gives_a_record_again(lab: Lab, recorded: tuple[SiteRecord, Inventory], tmp_path: Path) -> None:
    for path, text in recorded[0].files().items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    replay, _ = server.start_lab(str(tmp_path), "replay")
    try:
        again, seen = record(replay)
        told = [(len(host.gpus), len(host.nics), host.version, host.profiles) for host in seen.hosts]
        signed_in = session.connect(replay.address, "anybody", "at all", Trust(ca_file=replay.ca_file))
        with pytest.raises(VsmlError) as caught:
            Gateway(signed_in).read_site(Scope(datacenter="lab-dc"))
        signed_in.close()
    finally:
        server.stop_lab("replay")
    of_lab = [(len(host.gpus), len(host.nics), host.version, host.profiles) for host in recorded[1].hosts]
    assert sorted(map(str, told)) == sorted(map(str, of_lab))
    assert not {host.name for host in seen.hosts} & {host.name for host in recorded[1].hosts}
    assert differences(shape_of(recorded[0]), shape_of(again)) == []
    assert caught.value.code == "site.not-found"  # its name is a pseudonym


GUEST = CommandExchange(
    where="guests", machine="x5eed", name="mlx5", command="modinfo mlx5_core", status=1, out="", err="not found\n"
)


def test_shells_of_hosts_and_guests_answer_again_what_they_printed(
    lab: Lab, recorded: tuple[SiteRecord, Inventory], tmp_path: Path
) -> None:
    (first, *_) = recorded[1].hosts
    signed_in = session.connect(lab.address, lab.username, lab.password(), Trust(ca_file=lab.ca_file))
    EsxHosts(signed_in).ssh(first.ref, run=True)
    reader = SiteReader(TextRedactor(Pseudonyms()))
    reader.read_hosts([first.name], shells(lab.name, tmp_path / "lab"))
    EsxHosts(signed_in).ssh(first.ref, run=False)
    signed_in.close()
    made = replace(recorded[0], commands=(*reader.commands, GUEST))
    folder = tmp_path / "record"
    for path, text in made.files().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    assert reader.gaps == []
    assert {"firmware-1", "mst", "vibs"} <= {each.name for each in made.commands}
    server.start_lab(str(folder), "shells")
    try:
        again = shells("shells", tmp_path / "replay")
        for each in made.commands:
            answer = again.run(each.machine, each.command)
            assert (answer.status, answer.out.splitlines()) == (each.status, each.out.splitlines())
        machine = made.commands[0].machine
        listed = mft.devices(again.run(machine, mft.MST_STATUS).out)
        assert mft.value(again.run(machine, mft.query(listed[0].name)).out) == mft.FirmwareSetting(False, False)
        assert again.run(machine, "id").status == 127
    finally:
        server.stop_lab("shells")


def shells(lab: str, folder: Path) -> EsxiShells:
    folder.mkdir()
    access = hosts.access(lab)
    assert access is not None
    return EsxiShells(access, folder)


@pytest.mark.parametrize("described", list_shapes(), ids=lambda each: each["under"])
def test_the_lab_answers_as_public_documents_say(
    described: dict[str, dict[str, str]], recorded: tuple[SiteRecord, Inventory]
) -> None:
    under = f"{described['under']}."
    ours = {path.removeprefix(under): kinds for path, kinds in shape_of(recorded[0]).items() if path.startswith(under)}
    allowed = described["required"] | described["optional"]
    assert ours.keys() <= allowed.keys()
    assert described["required"].keys() <= ours.keys()
    assert {path: {allowed[path]} for path in ours} == ours


def test_the_lab_answers_as_real_sites_did(recorded: tuple[SiteRecord, Inventory]) -> None:
    ours = shape_of(recorded[0])
    assert [each for folder in list_records() for each in differences(shape_of_folder(folder), ours)] == []


def doctor(lab: Lab, folder: Path, *options: str) -> tuple[int, dict[str, Any]]:
    """Return the exit status of `vsml doctor --record`, and what it answers as JSON."""
    command = [sys.executable, "-m", "vsphere_ml", "doctor", "--lab", lab.name, "--record", str(folder), "-o", "json"]
    environment = {**os.environ, "VSML_STATE_DIR": str(lab.password_file.parents[2])}
    ended = subprocess.run(
        [*command, *options], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    return ended.returncode, json.loads(ended.stdout)


def test_a_record_is_written_once_it_was_agreed_to_and_never_over_another(lab: Lab, tmp_path: Path) -> None:
    folder = tmp_path / "site"
    status, answer = doctor(lab, folder)
    assert (status, answer["errors"][0]["code"], folder.exists()) == (2, "confirm.needed", False)
    status, answer = doctor(lab, folder, "--yes")
    assert (status, answer["errors"], answer["data"]["record"]["gaps"]) == (0, [], [])
    assert sorted(str(file.relative_to(folder)) for file in folder.rglob("*.*")) == answer["data"]["record"]["files"]
    everything = "".join(file.read_text() for file in folder.rglob("*.*"))
    assert not re.search(f"esx-0|lab-dc|dvs-gpu|{re.escape(lab.username)}|{re.escape(lab.password())}", everything)
    status, answer = doctor(lab, folder, "--yes")
    assert (status, answer["errors"][0]["code"]) == (2, "site.record-exists")


def test_a_field_that_the_lab_lacks_or_has_otherwise_is_a_difference(recorded: tuple[SiteRecord, Inventory]) -> None:
    ours = shape_of(recorded[0])
    real = {**ours, "config.graphicsInfo.HostGraphicsInfo.slot": {"number"}, "config.maxMtu": {"string"}}
    assert differences(real, ours) == ["config.graphicsInfo.HostGraphicsInfo.slot", "config.maxMtu"]
