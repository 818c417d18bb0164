"""`vsml port --prove`: both scripts are run by the Python that is named; what goes wrong with that is an error.

The frameworks are stand-ins here: `torch` makes up a loss whenever `backward` is called.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.bench.porting.rewrite.test_port_script import EXAMPLES
from vsphere_ml.cli import app

if TYPE_CHECKING:
    from collections.abc import Callable

    Prove = Callable[..., tuple[int, dict[str, Any]]]

TORCH = """
import random
class Tensor:
    loss = 1.0
    def numel(self): return 1
    def detach(self): return self.loss
    def backward(self): pass
def manual_seed(number): pass
class utils:
    class data:
        class RandomSampler: __iter__ = None
        class DataLoader:
            def __init__(self, data, sampler=None): self.data, self.sampler = data, sampler
            def __iter__(self): return iter(self.data)
        class distributed:
            class DistributedSampler:
                __iter__ = None
                def __init__(self, *given, **named): pass
class cuda:
    def is_available(): return False
class optim:
    class SGD:
        def __init__(self, parameters, lr): pass
        def step(self): pass
class Model:
    def parameters(self): return []
    def named_parameters(self): return []
    def state_dict(self): return {}
"""
HOROVOD = """
def init(): pass
def rank(): return 0
def size(): return 1
def local_rank(): return 0
def DistributedOptimizer(optimizer, named_parameters): return optimizer
def broadcast_parameters(state, root_rank): pass
"""
SCRIPT = """
import sys
import torch
from torch.utils.data import DataLoader

data = [1, 2, 3]
loader = DataLoader(data)
model = torch.Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for each in loader:
    loss = torch.Tensor()
    loss.loss = each / len(sys.argv)
    loss.backward()
    optimizer.step()
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    stubs = tmp_path / "stubs"
    for name, text in (("torch", TORCH), ("horovod", "")):
        (stubs / name).mkdir(parents=True)
        (stubs / name / "__init__.py").write_text(text)
    # `from torch.utils.data import DataLoader` wants modules.
    (stubs / "torch" / "utils").mkdir()
    (stubs / "torch" / "utils" / "__init__.py").write_text("")
    (stubs / "torch" / "utils" / "data.py").write_text("from torch import inner\nglobals().update(vars(inner))\n")
    (stubs / "torch" / "__init__.py").write_text(TORCH + "inner = utils.data\nimport torch.utils.data\n")
    (stubs / "horovod" / "torch.py").write_text(HOROVOD)
    monkeypatch.setenv("PYTHONPATH", str(stubs))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT)
    return tmp_path / "train.py"


@pytest.fixture
def prove(capsys: pytest.CaptureFixture[str]) -> Prove:
    def run(*arguments: object) -> tuple[int, dict[str, Any]]:
        status = app.run(["port", "--prove", "-o", "json", *map(str, arguments)])
        return status, json.loads(capsys.readouterr().out)

    return run


def test_equal_losses_are_proven_and_the_script_gets_its_arguments(script: Path, prove: Prove) -> None:
    status, answers = prove(script, "--", "--epochs", "1")
    assert (status, answers["status"]) == (0, "success"), answers
    proof = answers["data"]["proof"]
    assert (proof["steps"], proof["first_loss"], proof["largest_difference"]) == (3, pytest.approx(1 / 3), 0.0)


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("loss.loss =", "loss.loss = ('hvd' in globals()) +", "port.not-equal"),
        ("data = [1, 2, 3]", "data = [1]", "port.no-curve"),
        ("data = [1, 2, 3]", "data = [1, 2 / 0]", "port.run-failed"),
        ("data = [1, 2, 3]", "data = [1, 2 / ('hvd' not in globals())]", "port.run-failed"),
        ("data = [1, 2, 3]", "data = [__import__('time').sleep(20)]", "port.run-failed"),
    ],
)
def test_what_is_not_equal_or_fails_is_an_error(old: str, new: str, code: str, script: Path, prove: Prove) -> None:
    script.write_text(SCRIPT.replace(old, new))
    status, answers = prove("--max-time", 2 if "sleep" in new else 60, script)
    error = answers["errors"][0]
    assert (status, error["code"], error["target"]) == (6, code, str(script))


def test_the_framework_that_is_missing_is_named(script: Path, prove: Prove, tmp_path: Path) -> None:
    (tmp_path / "stubs" / "horovod" / "torch.py").write_text("raise ImportError('Extension is not built')\n")
    status, answers = prove(script)
    assert (status, answers["errors"][0]["code"]) == (6, "port.no-framework")
    assert answers["errors"][0]["message"].split()[0] == "horovod.torch"


def test_a_python_that_is_none(script: Path, prove: Prove) -> None:
    status, answers = prove("--python", script.parent / "none", script)
    assert (status, answers["errors"][0]["code"]) == (2, "file.unreadable")


def test_without_prove_nothing_is_run(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script.write_text(f"open('ran', 'w')\n{SCRIPT}")
    assert app.run(["port", str(script)]) == 0
    assert not Path("ran").exists()
    for words in (["--python", sys.executable, str(script)], [str(script), "--", "x"]):
        capsys.readouterr()
        status = app.run(["port", "-o", "json", *words])
        assert (status, json.loads(capsys.readouterr().out)["errors"][0]["code"]) == (2, "usage")


def test_what_is_left_or_ported_is_not_run(script: Path, prove: Prove) -> None:
    script.write_text(f"open('ran', 'w')\n{SCRIPT.replace('torch.optim.SGD(', 'made(')}")
    assert prove(script)[0] == 6
    text = EXAMPLES[0].with_name("torch_loop.py").read_text()
    script.write_text(text)
    app.run(["port", "--in-place", str(script)])
    assert not Path("ran").exists()
