"""Trains a small classifier with Keras' fit on a tf.data pipeline; checkpoints and a log come by callbacks."""

from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow import keras

OUT = Path("checkpoints")
made = np.random.default_rng(3)
images = made.normal(size=(300, 8, 8, 1)).astype("float32")
kinds = made.integers(0, 4, size=300)

train = tf.data.Dataset.from_tensor_slices((images[:240], kinds[:240]))
train = train.shuffle(240, seed=3).batch(16).prefetch(2)
held_out = tf.data.Dataset.from_tensor_slices((images[240:], kinds[240:])).batch(16)

model = keras.Sequential(
    [
        keras.layers.Conv2D(4, 3, activation="relu"),
        keras.layers.Flatten(),
        keras.layers.Dense(4),
    ]
)
rate = 0.005
optimizer = keras.optimizers.SGD(learning_rate=rate, momentum=0.9)
model.compile(
    optimizer=optimizer,
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)

OUT.mkdir(exist_ok=True)
checkpoint = keras.callbacks.ModelCheckpoint(str(OUT / "best.keras"), monitor="val_loss", save_best_only=True)
callbacks = [
    checkpoint,
    keras.callbacks.TerminateOnNaN(),
]
callbacks.append(keras.callbacks.CSVLogger(str(OUT / "log.csv")))

# Steps are counted for one device.
model.fit(train, validation_data=held_out, epochs=2, callbacks=callbacks)
