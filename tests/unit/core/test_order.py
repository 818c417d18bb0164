from __future__ import annotations

import pytest

from vsphere_ml.core.order import fold_names

FOLDED = {
    "three that count up": (["node-03", "node-01", "node-02"], ("node-[01-03]",)),
    "two stay two": (["node-1", "node-2"], ("node-1", "node-2")),
    "a gap": (["n1", "n2", "n3", "n5"], ("n[1-3]", "n5")),
    "hosts of one domain": (["esx-1.lab.test", "esx-2.lab.test", "esx-3.lab.test"], ("esx-[1-3].lab.test",)),
    "hosts of two domains": (["esx-1.a", "esx-2.b", "esx-3.a"], ("esx-1.a", "esx-2.b", "esx-3.a")),
    "more digits": (["n9", "n10", "n11"], ("n[9-11]",)),
    "other digits for the same number": (["n1", "n02", "n3"], ("n1", "n02", "n3")),
    "no number": (["one", "two", "three"], ("one", "three", "two")),
    "addresses": (["10.0.0.1", "10.0.0.2", "10.0.0.3"], ("10.0.0.1", "10.0.0.2", "10.0.0.3")),
    "none": ([], ()),
}


@pytest.mark.parametrize("case", FOLDED)
def test_names_that_count_up_are_one(case: str) -> None:
    names, folded = FOLDED[case]
    assert fold_names(names) == folded
