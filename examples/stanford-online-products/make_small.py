"""Makes a small synthetic set in the layout of Stanford Online Products. None of its images is of that dataset.

A super-class is a direction of stripes and a colour; a product has a width of stripes, a background and a light of its
own; each image another place and noise. Products of the test list are in no training image, as in the real lists.
"""

import argparse
import colorsys
from pathlib import Path

import numpy as np
import products
import tensorflow as tf

DIRECTIONS = 4
SYNTHETIC = "SYNTHETIC.txt"
NOTE = (
    "Every image here was made by make_small.py, none is of Stanford Online Products. Accuracy on them means nothing.\n"
)


def make_image(made, super_class, look, size):
    """Return one image, uint8 of shape (size, size, 3)."""
    across, down = np.meshgrid(np.arange(size), np.arange(size))
    angle = np.pi * (super_class % DIRECTIONS) / DIRECTIONS + made.normal(0, 0.06)
    place = (across * np.cos(angle) + down * np.sin(angle)) / size
    stripes = 0.5 + 0.5 * np.sin(2 * np.pi * (look["stripes"] * place + made.uniform()))
    colour = np.array(colorsys.hsv_to_rgb(super_class / products.SUPER_CLASSES, 0.9, 0.9))
    image = look["light"] * (stripes[..., None] * colour + (1 - stripes[..., None]) * look["background"])
    image += made.normal(0, 0.12, image.shape)
    return (255 * np.clip(image, 0, 1)).astype("uint8")


def make_part(folder, part, count, numbers, made, size):
    """Write a part's list and images, four of each product; return nothing."""
    lines, folders = [" ".join(products.HEADER)], [f"synthetic_{each + 1:02}_final" for each in range(12)]
    look = {}
    for at in range(count):
        super_class = at // 4 % products.SUPER_CLASSES
        if at % 4 == 0:
            product, background = next(numbers), made.uniform(0, 0.4, 3)
            look = {"stripes": made.uniform(3, 6), "background": background, "light": made.uniform(0.7, 1.1)}
        path = Path(folders[super_class]) / f"{part}_{product}_{at % 4}.JPG"
        image = make_image(made, super_class, look, size)
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(tf.io.encode_jpeg(image, quality=90).numpy())
        lines.append(f"{at + 1} {product} {super_class + 1} {path}")
    (folder / products.LISTS[part]).write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--train", type=int, default=2304, help="training images")
    parser.add_argument("--test", type=int, default=576, help="images of other products, to judge by")
    parser.add_argument("--size", type=int, default=96, help="of an image, in pixels")
    args = parser.parse_args()
    args.out.mkdir(parents=True)
    (args.out / SYNTHETIC).write_text(NOTE)
    made, numbers = np.random.default_rng(1), iter(range(1, args.train + args.test))
    make_part(args.out, "train", args.train, numbers, made, args.size)
    make_part(args.out, "test", args.test, numbers, made, args.size)
    print(f"made {args.train} and {args.test} synthetic images in {args.out}")


if __name__ == "__main__":
    main()
