"""What a person asks `predict` for, from loose options to a job; every mistake in words."""

from __future__ import annotations

import re

from vsphere_ml.bench.network.bus_bandwidth import COLLECTIVES
from vsphere_ml.bench.predict.models import model as known_model
from vsphere_ml.core.errors import ConfigError

MOST_NODES = 100_000
MOST_COUNTS = 64
LARGEST = 1e30
MOST_BYTES = 64 << 30  # of one message
_SHIFTS = {"": 0, "K": 10, "M": 20, "G": 30}
_SIZE = re.compile(r"(?P<number>[0-9]{1,12})(?P<unit>[KMG]?)")


def base_step_s(batch: int | None, flops: float | None, flops_per_sample: float | None) -> float | None:
    """Return the time of a step without exchange, as far as it follows from these."""
    if batch is None or flops is None or flops_per_sample is None:
        return None
    return batch * flops_per_sample / flops


def parameter_count(model: str | None, parameters: float | None) -> int:
    """Return how many parameters are trained. Raises ConfigError when the model is not said, or said twice."""
    if (model is None) == (parameters is None):
        raise _usage("one of --model and --parameters is wanted")
    return round(parameters) if parameters is not None else known_model(model or "").parameters


def sample_count(epochs: int | None, samples: int | None) -> int | None:
    """Return how many samples a training run sees. Raises ConfigError when one of both is not said."""
    if epochs is None and samples is None:
        return None
    if epochs is None or samples is None:
        raise _usage("--epochs and --samples go together")
    return epochs * samples


def collective(name: str) -> str:
    """Return the name of a collective, `_perf` left out; empty where none is named. Raises ConfigError else."""
    text = name.removesuffix("_perf").replace("-", "_")
    if text and text not in COLLECTIVES:
        raise _usage(f"--collective {name}: it is one of {', '.join(COLLECTIVES)}")
    return text


def check_finite(*values: float | None) -> None:
    """Raise ConfigError for what cannot be counted with: the option parser takes inf and nan."""
    for value in values:
        if value is not None and not 0 <= value <= LARGEST:
            raise _usage(f"{value} is no number that can be meant")


def node_counts(text: str) -> tuple[int, ...]:
    """Return the numbers in `2,4,8` or `1-4,8`, in order and each once."""
    ranges = [[end.strip() for end in part.split("-")] for part in text.split(",")]
    if not all(len(ends) in {1, 2} and all(map(_is_count, ends)) for ends in ranges):
        raise _usage(f"--nodes {text}: numbers from 1 to {MOST_NODES}, such as 2,4,8 or 1-4, are wanted")
    spans = [range(int(ends[0]), int(ends[-1]) + 1) for ends in ranges]
    if not all(spans):
        raise _usage(f"--nodes {text}: a range begins with the smaller number")
    if sum(map(len, spans)) > MOST_COUNTS:
        raise _usage(f"--nodes: at most {MOST_COUNTS} numbers")
    return tuple(sorted({count for span in spans for count in span}))


def message_sizes(text: str) -> tuple[int, ...]:
    """Return the bytes in `1024,64K,4M`, in order and each once; K, M and G are powers of 1024."""
    parts = [_SIZE.fullmatch(part.strip()) for part in text.split(",")]
    if not all(parts):
        raise _usage(f"--sizes {text}: bytes such as 1024,64K,4M are wanted")
    sizes = {int(part["number"]) << _SHIFTS[part["unit"]] for part in parts if part is not None}
    if min(sizes) < 1 or max(sizes) > MOST_BYTES:
        raise _usage(f"--sizes {text}: from 1 byte to {MOST_BYTES >> 30} GiB")
    return tuple(sorted(sizes))


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= MOST_NODES


def _usage(message: str) -> ConfigError:
    return ConfigError(message, code="usage", hint="see --help of this command")
