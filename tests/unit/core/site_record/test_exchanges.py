"""A site record as files, and folders that are none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from vsphere_ml.core.errors import ConfigError
from vsphere_ml.core.site_record.exchanges import (
    MANIFEST,
    SCHEMA,
    CommandExchange,
    SiteRecord,
    SoapExchange,
    read_manifest,
)

if TYPE_CHECKING:
    from pathlib import Path

BODY = "<e:Envelope xmlns:e='urn:e'><e:Body><{}/></e:Body></e:Envelope>"
RECORD = SiteRecord(
    vsml="0.1.0",
    api_version="8.0.3.0",
    recorded="2026-01-31",
    soap=(SoapExchange(request=BODY.format("Login"), response=BODY.format("LoginResponse")),),
    commands=(
        CommandExchange(
            where="hosts", machine="x1", name="ats", command="esxcli system", status=0, out="atsSupport\n", err=""
        ),
    ),
    gaps=("host x2: host.unreachable",),
)


def write(folder: Path, changed: dict[str, Any] | None = None) -> Path:
    for path, text in RECORD.files().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    if changed is not None:
        manifest = json.loads((folder / MANIFEST).read_text())
        (folder / MANIFEST).write_text(json.dumps({**manifest, **changed}))
    return folder


def test_a_record_is_a_manifest_and_a_file_an_exchange(tmp_path: Path) -> None:
    manifest = read_manifest(write(tmp_path))
    assert manifest["schema"] == SCHEMA
    assert manifest["gaps"] == ["host x2: host.unreachable"]
    assert [each["file"] for each in manifest["exchanges"]] == ["soap/0001-Login.xml", "hosts/x1-ats.json"]
    assert json.loads((tmp_path / "hosts" / "x1-ats.json").read_text())["out"] == ["atsSupport"]


@pytest.mark.parametrize(
    ("changed", "key"),
    [
        ({"exchanges": "all"}, "exchanges"),
        ({"exchanges": [7]}, "exchanges[0]"),
        ({"exchanges": [{"file": "../../etc/passwd"}]}, "exchanges[0]"),
        ({"exchanges": [{"file": "soap/0009-Gone.xml"}]}, ""),
    ],
)
def test_a_manifest_with_a_mistake_names_it(changed: dict[str, Any], key: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read_manifest(write(tmp_path, changed))
    assert caught.value.code == "site.record-invalid"
    assert [each.target for each in caught.value.problems] == [key]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 7}', "[" * 100_000])
def test_a_folder_that_is_no_record(text: str, tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_manifest(tmp_path)
    assert caught.value.code == "site.record-invalid"


def test_a_folder_without_a_manifest(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read_manifest(tmp_path)
    assert caught.value.code == "site.record-invalid"


def test_another_schema(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read_manifest(write(tmp_path, {"schema": "vsml.site-record/2"}))
    assert caught.value.code == "site.record-schema"
