"""How long gradients take over the ways inside a host and out of it, held against published figures."""

from __future__ import annotations

import pytest

from vsphere_ml.bench.predict.data_paths import ALL, PATHS, cross, find_paths
from vsphere_ml.core.errors import ConfigError

GB = 10**9


@pytest.mark.parametrize(
    ("name", "gigabytes_per_s"),
    [
        ("nvlink2", 150),  # 300, 600 and 900 GB/s in both directions, as the seed's table has them
        ("nvlink3", 300),
        ("nvlink4", 450),
        ("pcie3", 15.75),
        ("pcie4", 31.51),
        ("pcie5", 63.02),  # 126 GB/s in both directions
        ("upi", 20.8),  # a link; VMware's article has about 40 GB/s, of both directions
        ("hbm2-v100", 900),
        ("hbm2-a100-40", 1555),
        ("25gbe", 3.125),
        ("100gbe", 12.5),
    ],
)
def test_a_path_carries_what_its_maker_says_in_one_direction(name: str, gigabytes_per_s: float) -> None:
    (path,) = find_paths(name)
    assert path.bytes_per_s / GB == pytest.approx(gigabytes_per_s, rel=5e-4)
    assert path.source


def test_bert_large_crosses_25_gigabit_in_435_milliseconds() -> None:
    (crossing,) = cross(1_360_000_000, find_paths("25gbe"))
    assert crossing.seconds == pytest.approx(0.4352)


def test_all_paths_are_listed_once_the_fastest_of_each_kind_first() -> None:
    assert [each.name for each in find_paths(ALL)] == [*PATHS]


def test_a_kind_of_memory_is_all_that_have_it() -> None:
    assert [each.name for each in find_paths("hbm2e")] == ["hbm2e-a100-80-sxm", "hbm2e-a100-80-pcie"]


def test_an_unknown_path_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError) as refused:
        find_paths("nvlink33")
    assert (refused.value.code, refused.value.target, refused.value.hint) == (
        "bench.no-path",
        "nvlink33",
        "--path nvlink3",
    )
