"""Reads the lists of Stanford Online Products, as the archive has them.

`Ebay_train.txt` has a header and a line for each of 59,551 images, `Ebay_test.txt` for 60,502 of other products:
image_id class_id super_class_id path. A class is one product, a super-class one of twelve kinds of product. Song et
al., Deep Metric Learning via Lifted Structured Feature Embedding, CVPR 2016, https://cvgl.stanford.edu/projects/lifted_struct/
"""

from dataclasses import dataclass
from pathlib import Path

HEADER = ["image_id", "class_id", "super_class_id", "path"]
LISTS = {"train": "Ebay_train.txt", "test": "Ebay_test.txt"}
SUPER_CLASSES = 12


@dataclass(frozen=True)
class ProductImage:
    """One image; `super_class` counts from 0."""

    path: Path
    product: int
    super_class: int


def read_images(folder, part):
    """Return the images of a part, `train` or `test`; ValueError names the line that is not as it must be."""
    file = Path(folder) / LISTS[part]
    lines = file.read_text().splitlines()
    if not lines or lines[0].split() != HEADER:
        raise ValueError(f"{file}, line 1: expected {' '.join(HEADER)}")
    images = [_read_line(line, f"{file}, line {at}", file.parent) for at, line in enumerate(lines[1:], 2)]
    if not images:
        raise ValueError(f"{file} lists no image")
    return images


def _read_line(line, where, folder):
    words = line.split()
    if len(words) != len(HEADER) or not all(each.isdigit() for each in words[:3]):
        raise ValueError(f"{where}: expected three numbers and a path, not {line!r}")
    product, super_class = int(words[1]), int(words[2]) - 1
    if not 0 <= super_class < SUPER_CLASSES:
        raise ValueError(f"{where}: super-class {words[2]} is none of 1 to {SUPER_CLASSES}")
    path = Path(words[3])
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"{where}: {words[3]} leads out of the dataset's folder")
    return ProductImage(folder / path, product, super_class)
