"""Mixed precision and XLA as options of `train.py`: two ranks over loopback, with what lab guests train with."""

from __future__ import annotations

import json
import math
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from vsphere_ml.bench.launch import remote_job
from vsphere_ml.bench.model.record import Arithmetic
from vsphere_ml.lab import runtime

if TYPE_CHECKING:
    from pathlib import Path

PENDING = runtime.missing_need()
pytestmark = [
    pytest.mark.lab,
    pytest.mark.long,
    pytest.mark.skipif(PENDING is not None, reason=f"no Horovod to train with: {PENDING}"),
    pytest.mark.timeout(3600),  # the runtime is built the first time
]
LONGEST_S = 900
SMALL = ("--batch", "8", "--image", "32", "--steps", "12", "--local-every", "5")
COMPUTES_IN = {
    Arithmetic.FP32: "float32",
    Arithmetic.MIXED_FLOAT16: "float16",
    Arithmetic.MIXED_BFLOAT16: "bfloat16",
}


@pytest.fixture(scope="module")
def python() -> Path:
    return runtime.python(runtime.make_runtime(gloo_alone=True))


def trained(python: Path, folder: Path, *options: str) -> list[list[dict[str, Any]]]:
    """Return what each of two ranks told, line by line."""
    # Horovod's own 30 s are too few where one rank compiles while the other waits.
    patient = f"HOROVOD_GLOO_TIMEOUT_SECONDS={LONGEST_S}"
    rank = ["sh", "-c", f'{patient} VSML_BENCH_FILE={folder}/$HOROVOD_RANK.jsonl exec "$@"', "sh"]
    launcher = [str(python), str(python.with_name("horovodrun")), "--gloo", "-np", "2", "-H", "localhost:2"]
    words = [*launcher, *rank, str(python), str(remote_job.WORKLOADS / "train.py"), *SMALL, *options]
    subprocess.run(words, check=True, timeout=LONGEST_S, cwd=folder)
    return [[json.loads(line) for line in (folder / f"{rank}.jsonl").read_text().splitlines()] for rank in range(2)]


@pytest.mark.parametrize("xla", ["off", "on"])
@pytest.mark.parametrize("arithmetic", Arithmetic)
def test_every_arithmetic_trains_compiled_or_not_and_ranks_stay_in_sync(
    arithmetic: Arithmetic, xla: str, python: Path, tmp_path: Path
) -> None:
    ranks = trained(python, tmp_path, "--math", arithmetic, "--xla", xla)
    for lines in ranks:
        (model,) = (each for each in lines if each["kind"] == "model")
        assert (model["math"], model["xla"]) == (COMPUTES_IN[arithmetic], xla)
        losses = [each["loss"] for each in lines if each["kind"] == "step"]
        assert all(math.isfinite(each) for each in losses)
        assert losses[-1] < losses[0]
    weights = [each for lines in ranks for each in lines if each["kind"] == "sync"]
    assert [each["finite"] for each in weights] == [True, True]
    assert weights[0]["weights"] == weights[1]["weights"]


@pytest.mark.parametrize("model", ["mobilenetv2", "resnet50"])
def test_the_other_models_train_in_mixed_precision(model: str, python: Path, tmp_path: Path) -> None:
    more = ("--model", model, "--steps", "2", "--local-every", "0", "--batch", "2")
    for lines in trained(python, tmp_path, "--math", Arithmetic.MIXED_BFLOAT16, *more):
        assert [each["finite"] for each in lines if each["kind"] == "sync"] == [True]
