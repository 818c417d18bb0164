"""A ported script trains as the script did: on one rank by equal losses, on two by the joint batch's gradient.

TensorFlow and Horovod are those that lab guests train with; what they do not have is refused. Two ranks are two
processes over Gloo on loopback.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.guests import needed
from vsphere_ml.bench.porting.rewrite.port_script import port
from vsphere_ml.cli import app
from vsphere_ml.lab import runtime
from vsphere_ml.lab.guests import image

if TYPE_CHECKING:
    from collections.abc import Sequence

PENDING = runtime.missing_need()
pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(PENDING is not None, reason=f"no TensorFlow and Horovod to train with: {PENDING}"),
    pytest.mark.timeout(3600),  # the runtime is built the first time
]
LONGEST_S = 300
EXAMPLES = Path(__file__).parents[2] / "examples" / "porting"
SCRIPT = EXAMPLES / "tf_loop.py"
TOLERANCE = 1e-5
# The largest difference of any weight between two files of weights.
COMPARED = """
import sys, h5py, numpy
found = [{}, {}]
for name, into in zip(sys.argv[1:], found):
    with h5py.File(name) as file:
        file.visititems(lambda at, each: into.update({at: each[()]}) if hasattr(each, "shape") else None)
assert found[0].keys() == found[1].keys() and found[0]
names = [each for each in found[0] if each.startswith("layers")]
print(len(names), max(abs(found[0][each] - found[1][each]).max() for each in names))
"""


@pytest.fixture(scope="module")
def python() -> Path:
    return runtime.python(runtime.make_runtime(gloo_alone=True))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ran(command: Sequence[object], folder: Path) -> str:
    words = [str(each) for each in command]
    ended = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=LONGEST_S, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def ranks(python: Path, script: Path, *arguments: object) -> list[object]:
    """Return what starts two ranks on this machine."""
    launcher = python.with_name("horovodrun")
    return [python, launcher, "--gloo", "-np", "2", "-H", "localhost:2", python, script, *arguments]


def proven(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, object]]:
    capsys.readouterr()
    status = app.run(["port", "--prove", *map(str, arguments)])
    answers: dict[str, object] = json.loads(capsys.readouterr().out)
    return status, answers


def test_on_one_rank_every_loss_is_the_same(python: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--python", python, "-o", "json", SCRIPT, "--", "--samples", 128, "--out", folder / "x.weights.h5")
    status, answers = proven(capsys, *words)
    assert status == 0, answers
    proof = answers["data"]["proof"]  # type: ignore[index]
    assert proof["steps"] == 8
    assert proof["last_loss"] != proof["first_loss"]
    assert proof["largest_difference"] <= TOLERANCE


def wrapper(folder: Path, python: Path, **variables: str) -> Path:
    """Return a Python that finds more than this one does."""
    script = folder / "python"
    exported = "".join(f"export {name}={value}\n" for name, value in variables.items())
    script.write_text(f'#!/bin/sh\n{exported}exec {python} "$@"\n')
    script.chmod(0o755)
    return script


def assert_proven(capsys: pytest.CaptureFixture[str], python: Path, name: str) -> None:
    status, answers = proven(capsys, "--python", python, "-o", "json", EXAMPLES / f"{name}.py")
    assert status == 0, answers
    proof = answers["data"]["proof"]  # type: ignore[index]
    assert proof["steps"] >= 30
    assert proof["largest_difference"] <= TOLERANCE


@pytest.mark.long  # fetches tf-keras
@pytest.mark.parametrize("name", ["keras_fit", "keras_callbacks"])
def test_what_trains_by_fit_is_proven_with_keras_2(
    name: str, python: Path, folder: Path, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path_factory.mktemp("keras")
    into = ("--quiet", "--no-deps", "--target", own / "extra")
    ran([python, "-m", "pip", "install", *into, f"tf-keras=={runtime.TENSORFLOW.partition('==')[2]}"], folder)
    assert_proven(capsys, wrapper(own, python, PYTHONPATH=str(own / "extra")), name)


@pytest.mark.long  # Debian's PyTorch and a Horovod built with it, in the root of an image of lab guests
@needed
@pytest.mark.parametrize("name", ["torch_loop", "torch_scaler"])
@pytest.mark.usefixtures("folder")
def test_loops_of_pytorch_are_proven(
    name: str, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    usr = image.make_image(image.PYTORCH_HOROVOD) / image.ROOT / "usr"
    libraries = next((usr / "lib").glob("*-linux-gnu"))
    paths = (libraries, libraries / "blas", libraries / "lapack", libraries / "openmpi" / "lib", usr / "lib")
    found = {"LD_LIBRARY_PATH": ":".join(map(str, paths)), "OPAL_PREFIX": str(usr), "PYTHONDONTWRITEBYTECODE": "1"}
    python = wrapper(tmp_path_factory.mktemp("torch"), usr / "bin" / "python3", **found)
    assert_proven(capsys, python, name)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("loss_of(y, model(x, training=True))", "loss_of(y, model(x)) * (2.0 if 'hvd' in globals() else 1.0)"),
        ("range(args.epochs)", "range(1 if 'hvd' in globals() else 2)"),
    ],
    ids=["another loss", "fewer steps"],
)
def test_a_port_that_trains_otherwise_is_not_equal(
    old: str, new: str, python: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a port must never do: here the script itself trains otherwise once Horovod is imported."""
    text, script = SCRIPT.read_text(), folder / "train.py"
    assert old in text
    script.write_text(text.replace(old, new))
    status, answers = proven(capsys, "--python", python, "-o", "json", script, "--", "--samples", 64)
    assert (status, answers["errors"][0]["code"]) == (6, "port.not-equal"), answers  # type: ignore[index]


def test_what_is_not_there_is_named(python: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for script, missing in (("keras_fit", "tf_keras"), ("torch_loop", "torch")):
        status, answers = proven(capsys, "--python", python, "-o", "json", EXAMPLES / f"{script}.py")
        error = answers["errors"][0]  # type: ignore[index]
        assert (status, error["code"]) == (6, "port.no-framework")
        assert error["message"].startswith(missing)


def test_the_average_of_two_ranks_is_the_gradient_of_the_joint_batch(python: Path, folder: Path) -> None:
    """One step of descent at rate 1 is minus the gradient: 32 samples a rank, and 64 at once, dealt out alike."""
    ported = folder / "ported.py"
    ported.write_bytes(port(SCRIPT.read_bytes(), "tf_loop.py").after)
    common = ("--samples", 64, "--epochs", 1)
    ran([python, SCRIPT, *common, "--batch", 64, "--rate", 1.0, "--out", "one.weights.h5"], folder)
    words = (*common, "--batch", 32, "--rate", 0.5, "--out", "two.weights.h5")
    ran(ranks(python, ported, *words), folder)
    number, apart = ran([python, "-c", COMPARED, "one.weights.h5", "two.weights.h5"], folder).split()
    assert int(number) == 4
    assert float(apart) <= TOLERANCE


def test_without_the_average_the_gradient_is_another(python: Path, folder: Path) -> None:
    """The proof can fail: the same with the tape not wrapped."""
    ported = folder / "ported.py"
    text = port(SCRIPT.read_bytes(), "tf_loop.py").after.decode()
    assert "hvd.DistributedGradientTape(tape)" in text
    ported.write_text(text.replace("hvd.DistributedGradientTape(tape)", "tape"))
    common = ("--samples", 64, "--epochs", 1)
    ran([python, SCRIPT, *common, "--batch", 64, "--rate", 1.0, "--out", "one.weights.h5"], folder)
    ran(ranks(python, ported, *common, "--batch", 32, "--rate", 0.5, "--out", "two.weights.h5"), folder)
    _, apart = ran([python, "-c", COMPARED, "one.weights.h5", "two.weights.h5"], folder).split()
    assert float(apart) > 100 * TOLERANCE
