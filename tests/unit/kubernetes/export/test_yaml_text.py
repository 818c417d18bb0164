"""Every reader takes what is written alike, and a comment stays one."""

from __future__ import annotations

import pytest
import yaml

from tests.unit.kubernetes.export.exports import WITH_NICS, pools_of
from vsphere_ml.kubernetes.export.field_check import find_mistakes
from vsphere_ml.kubernetes.export.yaml_text import HexInteger, write_documents


@pytest.mark.parametrize("value", ["1e3", "0o17", "580.95", "TRUE", "no", "-x", "", "~", "0x10", "a: b", "1_000"])
def test_texts_stay_texts_in_yaml_1_1_and_1_2(value: str) -> None:
    text = write_documents((), [{"key": value}])
    assert yaml.safe_load(text) == {"key": value}
    assert text.partition("key: ")[2][0] in {'"', "'"}


def test_pci_ids_are_numbers_in_hexadecimal() -> None:
    text = write_documents((), [{"id": HexInteger(0x15B3)}])
    assert "id: 0x15b3" in text
    assert yaml.safe_load(text) == {"id": 0x15B3}


def test_a_comment_does_not_end_before_its_line() -> None:
    text = write_documents(["x\ny: 1", "z\u2028w: 1", "long " * 60, f"  {'command ' * 30}"], [{"a": 1}])
    assert list(yaml.safe_load_all(text)) == [{"a": 1}]
    assert all(line.startswith("#") or line in {"---", "a: 1"} for line in text.splitlines())
    assert max(len(line) for line in text.splitlines() if "long" in line) <= 120
    assert sum("command" in line for line in text.splitlines()) == 1


@pytest.mark.parametrize(
    ("written", "target"),
    [
        ({"nfd": {"enabled": "yes"}}, "nfd.enabled"),
        ({"nfd": {"enable": True}}, "nfd.enable"),
        ({"driver": {"imagePullSecrets": ["a", 3]}}, "driver.imagePullSecrets[1]"),
        ({"driver": []}, "driver"),
    ],
)
def test_a_field_that_is_none_or_of_another_type_is_a_mistake(written: dict[str, object], target: str) -> None:
    text = write_documents((), [written])
    assert [each.target for each in find_mistakes("gpu-operator", text, [written], pools_of(WITH_NICS))] == [target]


def test_a_text_that_reads_otherwise_is_a_mistake() -> None:
    assert list(find_mistakes("gpu-operator", "driver: {}", [{"nfd": {"enabled": True}}], pools_of(WITH_NICS)))
