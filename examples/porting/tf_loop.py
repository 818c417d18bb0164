"""Trains a small classifier on made-up data with TensorFlow, in a loop of its own, on one device."""

import argparse

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--samples", type=int, default=512)
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--rate", type=float, default=0.01)
parser.add_argument("--out", default="tf_loop.weights.h5")
args = parser.parse_args()

tf.keras.utils.set_random_seed(1)
made = np.random.default_rng(1)
features = made.normal(size=(args.samples, 16)).astype("float32")
labels = (features.sum(axis=1) > 0).astype("int64")
dataset = tf.data.Dataset.from_tensor_slices((features, labels)).batch(args.batch)

model = tf.keras.Sequential([tf.keras.layers.Dense(32, activation="relu"), tf.keras.layers.Dense(2)])
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = tf.keras.optimizers.SGD(args.rate)  # plain descent


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


for epoch in range(args.epochs):
    for x, y in dataset:
        loss = train_step(x, y)
    print(f"epoch {epoch}: loss {float(loss):.4f}")

model.save_weights(args.out)
