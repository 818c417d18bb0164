"""Turns the dataset's images into shards of TFRecords: all of one size, in an order that mixes the classes.

The lists go class by class, so images are shuffled before they are dealt out to shards; by a fixed seed, so that the
same dataset gives the same shards.
"""

import argparse
import json
import random
from pathlib import Path

import products
import tensorflow as tf

QUALITY = 95


def encode_image(path, size):
    """Return a JPEG of size x size pixels in colour; some of the real ones are grey."""
    image = tf.io.decode_jpeg(path.read_bytes(), channels=3)
    image = tf.image.resize(image, (size, size), antialias=True)
    return tf.io.encode_jpeg(tf.cast(tf.clip_by_value(image, 0, 255), tf.uint8), quality=QUALITY).numpy()


def encode_record(image, size):
    """Return an image with its super-class as one serialized tf.train.Example."""
    values = {
        "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[encode_image(image.path, size)])),
        "super_class": tf.train.Feature(int64_list=tf.train.Int64List(value=[image.super_class])),
    }
    return tf.train.Example(features=tf.train.Features(feature=values)).SerializeToString()


def write_shards(images, part, out, shards, size):
    """Write a part's shards, `train-00000-of-00008.tfrecord` and so on."""
    random.Random(1).shuffle(images)
    for shard in range(shards):
        name = out / f"{part}-{shard:05}-of-{shards:05}.tfrecord"
        with tf.io.TFRecordWriter(str(name)) as writer:
            for image in images[shard::shards]:
                writer.write(encode_record(image, size))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the dataset's folder, with Ebay_train.txt in it")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--size", type=int, default=64, help="of an image, in pixels")
    parser.add_argument("--shards", type=int, default=8, help="of each part")
    args = parser.parse_args()
    args.out.mkdir(parents=True)
    counts = {}
    for part in products.LISTS:
        images = products.read_images(args.data, part)
        write_shards(images, part, args.out, args.shards, args.size)
        counts[part] = len(images)
    # Written last: where it is, the shards are whole.
    (args.out / "shards.json").write_text(json.dumps({"size": args.size, "images": counts}) + "\n")
    print(f"wrote {args.shards} shards each of {counts} to {args.out}")


if __name__ == "__main__":
    main()
