from __future__ import annotations

import re

import pytest

from vsphere_ml.core.units import GIB, parse_integer, parse_size


@pytest.mark.parametrize(("text", "size"), [("64GiB", 64 * GIB), ("1.5 GiB", 3 * GIB // 2), (" 2 mib ", 2 << 20)])
def test_a_size_is_read_with_its_unit(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["64", "GiB", "-1GiB", "1e3GiB", "١GiB", "9" * 400 + "GiB", "0." + "1" * 400 + "TiB"])
def test_what_is_no_size_is_refused_however_long_its_number(text: str) -> None:
    with pytest.raises(ValueError, match=f"`{re.escape(text)}`"):
        parse_size(text)


@pytest.mark.parametrize(("printed", "number"), [("0", 0), ("007", 7), ("9" * 18, 10**18 - 1)])
def test_a_printed_number_is_read(printed: str, number: int) -> None:
    assert parse_integer(printed) == number


@pytest.mark.parametrize("printed", ["", "-1", "1.5", " 1", "²", "１６", "9" * 19, "9" * 5000, "x"])
def test_what_is_no_number_is_none(printed: str) -> None:
    assert parse_integer(printed) is None
