"""How a training computes: what its numbers are, and what updates them."""

from __future__ import annotations

from enum import StrEnum


class Optimizer(StrEnum):
    """What trains the parameters; by how many numbers it keeps for each."""

    SGD = "sgd"
    MOMENTUM = "momentum"
    ADAM = "adam"


class TrainingMath(StrEnum):
    """What is computed in: mixed keeps 16-bit weights and gradients, and 32-bit weights for the optimizer."""

    FP32 = "fp32"
    MIXED = "mixed"
