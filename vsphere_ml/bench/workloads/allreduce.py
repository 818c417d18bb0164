"""Sweeps message sizes with Horovod's all-reduce, and prints every repeat's time.

Runs in guests and imports nothing of vsml. Every rank adds JSON lines to the file named by VSML_BENCH_FILE, or prints
them. Of each exchange the first value is checked, of one more all values; ranks start a repeat together, after a tiny
all-reduce that is not measured.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from typing import Any

SIZES = "1024,65536,1048576,4194304,16777216,67108864"
FLOAT = 4  # bytes
ADAPTERS = "/sys/class/net"


def main() -> None:
    given = arguments()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import horovod.tensorflow as hvd
    import tensorflow as tf

    hvd.init()
    device = pin(tf, hvd)
    built = [name for name in ("gloo", "mpi", "nccl") if getattr(hvd, f"{name}_built")()]
    emit("model", device=device, versions=versions(tf), built=built)
    for size in given.sizes:
        sweep(tf, hvd, size, given)
    emit("end")
    hvd.shutdown()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--sizes", type=sizes, default=sizes(SIZES), help="bytes, comma-separated")
    parser.add_argument("--repeats", type=int, default=10, help="of each size; --warmup more come first")
    parser.add_argument("--warmup", type=int, default=2)
    return parser.parse_args()


def sizes(text: str) -> list[int]:
    return [max(FLOAT, int(each) // FLOAT * FLOAT) for each in text.split(",")]


def pin(tf: Any, hvd: Any) -> str:
    gpus = tf.config.list_physical_devices("GPU")
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    if not gpus:
        return "CPU"
    tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
    return f"GPU:{hvd.local_rank()}"


def sweep(tf: Any, hvd: Any, size: int, given: argparse.Namespace) -> None:
    mine = tf.fill([size // FLOAT], float(hvd.rank() + 1))
    ready = tf.zeros([1])

    @tf.function
    def reduce(values: Any) -> Any:
        return hvd.allreduce(values, op=hvd.Sum, name=f"sweep.{size}")

    @tf.function
    def meet(values: Any) -> Any:
        return hvd.allreduce(values, op=hvd.Sum, name=f"meet.{size}")

    meet(ready).numpy()
    before, exchanges = read_counters(), given.warmup + given.repeats + 1
    seconds, total, right = [], hvd.size() * (hvd.size() + 1) / 2, True
    for number in range(given.warmup + given.repeats):
        meet(ready).numpy()
        began = time.perf_counter()
        first = reduce(mine)[0].numpy()  # the value is there only when all of it is
        if number >= given.warmup:
            seconds.append(round(time.perf_counter() - began, 7))
        right = right and bool(first == total)
    result = reduce(mine)
    right = right and bool(tf.reduce_all(tf.equal(result, total)))
    meet(ready).numpy()  # by then every rank has all that this one sent
    emit(
        "sweep",
        size_bytes=size,
        seconds=seconds,
        right=right,
        exchanges=exchanges,
        sent=differences(before, read_counters()),
    )


def read_counters() -> dict[str, tuple[int, int]]:
    """Return the bytes and packets that each network adapter has sent since it is there."""
    return {
        adapter: (counter(adapter, "tx_bytes"), counter(adapter, "tx_packets"))
        for adapter in os.listdir(ADAPTERS)  # noqa: PTH208 - as short as this script can be
        if adapter != "lo" and os.path.isdir(f"{ADAPTERS}/{adapter}/statistics")  # noqa: PTH112 - bonding_masters is a file
    }


def counter(adapter: str, name: str) -> int:
    with open(f"{ADAPTERS}/{adapter}/statistics/{name}", encoding="utf-8") as text:  # noqa: PTH123 - as above
        return int(text.read())


def differences(before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]]) -> dict[str, list[int]]:
    return {
        name: [now - then for now, then in zip(after[name], before[name])]  # noqa: B905 - `strict` is not in Python 3.9
        for name in before
        if name in after
    }


def versions(tf: Any) -> dict[str, str]:
    from importlib.metadata import version

    return {"python": sys.version.split()[0], "tensorflow": tf.__version__, "horovod": version("horovod")}


def emit(kind: str, **what: object) -> None:
    line = json.dumps({"kind": kind, **what}) + "\n"
    file = os.environ.get("VSML_BENCH_FILE")
    if file is None:
        sys.stdout.write(line)
        sys.stdout.flush()
        return
    with open(file, "a", encoding="utf-8") as lines:  # noqa: PTH123 - as short as this script can be
        lines.write(line)


if __name__ == "__main__":
    main()
