"""What `train` trains, for real, on a CPU: each model alone in one process, its gradients compressed to fp16."""

from __future__ import annotations

import json
import math
import os
import subprocess

import pytest

from vsphere_ml.bench.launch import remote_job
from vsphere_ml.lab import runtime

PENDING = runtime.missing_need()
pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(PENDING is not None, reason=f"no TensorFlow and Horovod to train with: {PENDING}"),
    pytest.mark.timeout(3600),  # the runtime is built the first time
]


def train(*options: str) -> dict[str, list[dict[str, float]]]:
    """Return the lines that the workload printed, by kind."""
    home = runtime.make_runtime()
    completed = subprocess.run(
        [runtime.python(home), remote_job.WORKLOADS / "train.py", "--precision", "fp16", "--steps", "3", *options],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"LD_LIBRARY_PATH": str(home / "openmpi-5" / "lib")},
    )
    lines: dict[str, list[dict[str, float]]] = {}
    for line in map(json.loads, completed.stdout.splitlines()):
        lines.setdefault(line["kind"], []).append(line)
    return lines


@pytest.mark.parametrize(
    ("model", "parameters"), [("mobilenetv2", 2_236_682), pytest.param("resnet50", 23_555_082, marks=pytest.mark.long)]
)
def test_larger_models_train_with_compressed_gradients(model: str, parameters: int) -> None:
    answers = train("--model", model, "--batch", "8", "--image", "64")
    assert answers["model"][0]["parameters"] == parameters
    assert len(answers["step"]) == 3
    assert all(math.isfinite(each["loss"]) for each in answers["step"])
    assert answers["sync"][0]["finite"] is True


def test_weights_that_overflowed_are_told() -> None:
    """Two images of 32 pixels leave a feature map of one pixel: normalising it makes gradients beyond fp16."""
    answers = train("--model", "mobilenetv2", "--batch", "2", "--image", "32")
    assert answers["sync"][0]["finite"] is False
