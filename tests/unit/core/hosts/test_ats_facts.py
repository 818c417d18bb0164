"""The facts of ATS: versions as a table, settings with three facts, records of former values."""

from __future__ import annotations

import pytest

from vsphere_ml.core.catalog import ats_versions
from vsphere_ml.core.hosts import saved_state
from vsphere_ml.core.hosts.saved_state import Record
from vsphere_ml.core.model.host_settings import AccessMethod, HostSetting, SettingKind, SettingState

# version, build, CPU: the table's row, whether the kernel has the setting, its default, the option, what is refused
TABLE = [
    ("7.0.0", "15843807", "intel", "before 7.0 U2", False, None, False, "7.0 U2"),
    ("7.0.1", "16850804", "intel", "before 7.0 U2", False, None, False, "7.0 U2"),
    ("6.7.0", "14320388", "intel", "before 7.0 U2", False, None, False, "7.0 U2"),
    ("7.0.2", "17630552", "intel", "7.0 U2", True, False, False, ""),
    ("7.0.2", "17630552", "amd", "7.0 U2", True, False, False, "Intel"),
    ("7.0.3", "18644231", "intel", "7.0 U3 before U3d", True, None, None, ""),
    ("7.0.3", "19482537", "intel", "7.0 U3d and later", True, True, True, ""),
    ("7.0.3", "21930508", "amd", "7.0 U3d and later", True, True, True, ""),
    ("8.0.0", "20513097", "intel", "8.0 and later", True, True, True, ""),
    ("8.0.3", "", "amd", "8.0 and later", True, True, True, ""),
    ("9.0.1", "24957456", "intel", "8.0 and later", True, True, True, ""),
]


@pytest.mark.parametrize(("version", "build", "cpu", "name", "present", "default", "option", "refused"), TABLE)
def test_each_version_has_its_row(  # noqa: PLR0917 - a row of the table
    version: str,
    build: str,
    cpu: str,
    name: str,
    present: bool,  # noqa: FBT001
    default: bool | None,  # noqa: FBT001
    option: bool | None,  # noqa: FBT001
    refused: str,
) -> None:
    row = ats_versions.release(version, build)
    assert (row.name, row.present, row.default, row.option) == (name, present, default, option)
    text = ats_versions.refusal(version, build, cpu)
    assert (refused in text) if refused else not text


def test_a_cpu_that_no_document_speaks_of_is_told() -> None:
    assert ats_versions.version_warning("8.0.3", "intel") == ""
    assert "AMD" in ats_versions.version_warning("8.0.3", "amd")
    assert ats_versions.version_warning("8.0.3", "") != ""


def fact(configured: str | None, effective: str | None, **knobs: object) -> HostSetting:
    given: dict[str, object] = {
        "part": SettingKind.KERNEL,
        "name": "atsSupport",
        "wanted": "TRUE",
        "access": AccessMethod.ESXCLI,
    }
    return HostSetting(configured=configured, effective=effective, **{**given, **knobs})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("configured", "effective", "state", "three"),
    [
        (None, None, SettingState.UNKNOWN, (False, False, False)),
        ("FALSE", "FALSE", SettingState.NOT_CONFIGURED, (False, False, False)),
        ("FALSE", "TRUE", SettingState.NOT_CONFIGURED, (False, False, False)),  # in effect until the next boot
        ("TRUE", "FALSE", SettingState.PENDING, (True, True, False)),
        ("TRUE", None, SettingState.UNPROVEN, (True, False, False)),
        ("TRUE", "TRUE", SettingState.EFFECTIVE, (True, False, True)),
    ],
)
def test_the_three_facts_are_kept_apart(
    configured: str | None, effective: str | None, state: SettingState, three: tuple[bool, bool, bool]
) -> None:
    seen = fact(configured, effective)
    assert seen.state is state
    assert (seen.is_configured, seen.is_pending, seen.is_effective) == three


def test_more_functions_than_wanted_will_do_unless_a_former_value_comes_back() -> None:
    functions: dict[str, object] = {"part": SettingKind.SRIOV, "wanted": "2"}
    assert fact("8", "8", **functions).is_effective
    assert not fact("1", "8", **functions).is_configured
    assert not fact("8", "8", exact=True, **functions).is_configured


def test_a_record_comes_back_as_it_was_written_and_stays_short() -> None:
    former = {"kernel": "FALSE", "firmware:0000:3b:00.0": "False", "graphics": "shared"}
    record = Record(cluster="train", boot="2026-01-01T00:00:00+00:00", maintenance=True, former=former)
    assert saved_state.parse(record.text()) == record
    assert len(record.text()) < 200  # a custom attribute may hold little


def test_what_was_written_down_first_wins() -> None:
    record = Record(cluster="train", boot="", former={"kernel": "FALSE"})
    assert record.with_former({"kernel": "TRUE", "graphics": "shared"}).former == {
        "kernel": "FALSE",
        "graphics": "shared",
    }


@pytest.mark.parametrize(
    "text", ["", "no", "{}", '{"v":2}', '{"v":1}', "[]", '{"v":1,"by":"a","boot":"","in":0,"was":7}']
)
def test_what_is_no_record_is_none(text: str) -> None:
    assert saved_state.parse(text) is None
