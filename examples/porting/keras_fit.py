"""Trains a small regression with Keras' fit, on one device."""

import numpy as np
import tensorflow as tf


def make_data(samples):
    made = np.random.default_rng(2)
    features = made.normal(size=(samples, 8)).astype("float32")
    targets = features @ made.normal(size=(8, 1)).astype("float32")
    return features, targets


def main():
    x_train, y_train = make_data(512)
    x_test, y_test = make_data(128)
    model = tf.keras.Sequential([tf.keras.layers.Dense(16, activation="tanh"), tf.keras.layers.Dense(1)])
    model.compile(optimizer="adam", loss="mse")
    model.fit(
        x_train,
        y_train,
        batch_size=32,
        epochs=3,
        shuffle=False,  # the data is mixed already
    )
    print("loss", model.evaluate(x_test, y_test, verbose=0))
    model.save("regression.keras")


if __name__ == "__main__":
    main()
