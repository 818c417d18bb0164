"""Trains MobileNet on shards of Stanford Online Products, on one device, to tell twelve kinds of product apart.

Prints one line of JSON at its end: accuracy on images of products it has not seen, images a second, and the share of
the time that steps waited for their batch.

The rate grows with the batch, is reached in steps, and is a tenth in the last third: Goyal and others, Accurate, Large
Minibatch SGD, 2017, 2.1, 2.2 and 5.1. The statistics of batch normalisation that it is judged by are of the last
weights, not the moving ones of training, which lag behind where steps are few: Wu and Johnson, Rethinking "Batch" in
BatchNorm, 2021, 3.
"""

import argparse
import hashlib
import json
import os
import time
from pathlib import Path

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--data", type=Path, required=True, help="the shards' folder, which preprocess.py made")
parser.add_argument("--epochs", type=int, default=9)
parser.add_argument("--batch", type=int, default=64, help="images a step, on this device")
parser.add_argument("--rate", type=float, default=0.08, help="for a batch of 64")
parser.add_argument("--warm-up", type=int, default=36, help="steps until the rate is reached")
parser.add_argument("--alpha", type=float, default=0.25, help="MobileNet's width")
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--out", default="mobilenet.weights.h5")
args = parser.parse_args()

SUPER_CLASSES = 12
size = json.loads((args.data / "shards.json").read_text())["size"]
tf.keras.utils.set_random_seed(args.seed)


def parse(record):
    fields = {"image": tf.io.FixedLenFeature([], tf.string), "super_class": tf.io.FixedLenFeature([], tf.int64)}
    found = tf.io.parse_single_example(record, fields)
    image = tf.io.decode_jpeg(found["image"], channels=3)
    return tf.reshape(tf.cast(image, tf.float32) / 127.5 - 1, (size, size, 3)), found["super_class"]


files = sorted(str(each) for each in args.data.glob("train-*.tfrecord"))
train = tf.data.TFRecordDataset(files)
train = train.shuffle(1024, seed=args.seed).map(parse).batch(args.batch, drop_remainder=True).prefetch(2)
some = tf.data.TFRecordDataset(files).map(parse).batch(64)
test_files = sorted(str(each) for each in args.data.glob("test-*.tfrecord"))
held_out = tf.data.TFRecordDataset(test_files).map(parse).batch(64)

model = tf.keras.applications.MobileNet((size, size, 3), alpha=args.alpha, weights=None, classes=SUPER_CLASSES)
normalisations = [each for each in model.layers if isinstance(each, tf.keras.layers.BatchNormalization)]
loss_of = tf.keras.losses.SparseCategoricalCrossentropy()
optimizer = tf.keras.optimizers.SGD(args.rate * args.batch / 64, momentum=0.9)
full_rate = float(optimizer.learning_rate)


@tf.function
def train_step(images, labels):
    with tf.GradientTape() as tape:
        loss = loss_of(labels, model(images, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


def tell(kind, **values):
    """Add a line to the record, where `vsml bench` keeps one."""
    if "VSML_BENCH_FILE" in os.environ:
        with Path(os.environ["VSML_BENCH_FILE"]).open("a") as record:
            record.write(json.dumps({"kind": kind, **values}) + "\n")


def measure_statistics():
    """Set those of batch normalisation to the mean over some thousand images, the same on every device."""
    for number, (images, _) in enumerate(some.take(40)):
        for each in normalisations:
            each.momentum = number / (number + 1)
        model(images, training=True)


steps, input_s, began = 0, 0.0, time.perf_counter()
last = first = began
for epoch in range(args.epochs):
    rate = full_rate if epoch < args.epochs * 2 / 3 else full_rate / 10
    for images, labels in train:
        ready = time.perf_counter()
        optimizer.learning_rate.assign(rate * min(1, (steps + 1) / args.warm_up))
        loss = float(train_step(images, labels))
        now = time.perf_counter()
        tell("step", seconds=now - last, input_s=ready - last, work_s=now - ready, loss=loss)
        steps, input_s, last = steps + 1, input_s + ready - last, now
        if steps == 1:  # the first step traces the model
            input_s, first = 0.0, now
tell("wall", seconds=last - began)
measure_statistics()
model.save_weights(args.out)

right = sum(int(tf.reduce_sum(tf.cast(tf.argmax(model(x), 1) == y, tf.int32))) for x, y in held_out)
trained = b"".join(each.numpy().tobytes() for each in model.trainable_variables)
result = {
    "accuracy": right / json.loads((args.data / "shards.json").read_text())["images"]["test"],
    "samples": steps * args.batch,
    "images_per_s": (steps - 1) * args.batch / (last - first) if steps > 1 else None,
    "input_share": input_s / (last - first) if steps > 1 else None,
    "weights": hashlib.sha256(trained).hexdigest()[:16],
}
print(json.dumps(result), flush=True)
