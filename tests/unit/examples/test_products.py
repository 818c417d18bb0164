"""The reader of Stanford Online Products' lists, as the archive has them, and what it refuses."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from vsphere_ml.bench.porting.check import check
from vsphere_ml.bench.porting.rewrite.port_script import port

EXAMPLE = Path(__file__).parents[3] / "examples" / "stanford-online-products"
HEADER = "image_id class_id super_class_id path"
TRAIN = f"""\
{HEADER}
1 1 1 bicycle_final/111085122871_0.JPG
2 1 1 bicycle_final/111085122871_1.JPG
59551 11318 12 toaster_final/400909376440_5.JPG
"""


@pytest.fixture
def products(monkeypatch: pytest.MonkeyPatch) -> Any:
    spec = spec_from_file_location("products", EXAMPLE / "products.py")
    assert spec is not None
    assert spec.loader is not None
    made = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "products", made)  # its dataclass looks itself up there
    spec.loader.exec_module(made)
    return made


def test_the_real_layout_is_read(products: Any, tmp_path: Path) -> None:
    (tmp_path / "Ebay_train.txt").write_text(TRAIN)
    images = products.read_images(tmp_path, "train")
    assert [each.super_class for each in images] == [0, 0, 11]
    assert [each.product for each in images] == [1, 1, 11318]
    assert images[-1].path == tmp_path / "toaster_final" / "400909376440_5.JPG"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "line 1"),
        ("1 1 1 bicycle_final/1.JPG\n", "line 1"),
        (f"{HEADER}\n", "no image"),
        (f"{HEADER}\n1 1 bicycle_final/1.JPG\n", "line 2"),
        (f"{HEADER}\n1 1 1 a.JPG\n2 1 13 a.JPG\n", "line 3"),
        (f"{HEADER}\n1 1 0 a.JPG\n", "line 2"),
        (f"{HEADER}\n1 1 1 ../a.JPG\n", "line 2"),
        (f"{HEADER}\n1 1 1 /etc/a.JPG\n", "line 2"),
    ],
)
def test_what_is_not_in_that_layout_is_refused_with_its_line(
    products: Any, tmp_path: Path, text: str, where: str
) -> None:
    (tmp_path / "Ebay_test.txt").write_text(text)
    with pytest.raises(ValueError, match=where):
        products.read_images(tmp_path, "test")


def test_its_training_is_ported_in_full_and_what_is_held_out_is_not_dealt_out() -> None:
    script = (EXAMPLE / "train.py").read_bytes()
    ported = port(script, "train.py")
    assert ported.left == ()
    assert check(ported.after, "train.py").is_complete
    assert ported.after.count(b".shard(hvd.size(), hvd.rank())") == 1
    (held_out,) = [line for line in script.splitlines() if line.startswith(b"held_out = ")]
    assert held_out in ported.after
