"""Step 3: the learning rate times the number of workers."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from vsphere_ml.bench.porting import places
from vsphere_ml.bench.porting.rewrite.shapes import TrainingShape
from vsphere_ml.bench.porting.rewrite.source_text import CannotRewrite, need
from vsphere_ml.bench.porting.script import argument
from vsphere_ml.bench.porting.steps import SCALE

if TYPE_CHECKING:
    from vsphere_ml.bench.porting.rewrite.script_editor import ScriptEditor

# What Keras' and PyTorch's optimizers take when no rate is given: https://keras.io/api/optimizers/,
# https://docs.pytorch.org/docs/stable/optim.html. PyTorch's SGD had none before 2.0.
_KERAS_RATES = {
    **dict.fromkeys(("Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "Ftrl", "Nadam", "RMSprop"), "0.001"),
    "SGD": "0.01",
}
_TORCH_RATES = {"Adam": "0.001", "AdamW": "0.001", "RAdam": "0.001", "NAdam": "0.002", "Adamax": "0.002"}
_NUMBERS = ("float", "int", "max", "min", "round", "pow", ".parse_args", "argparse.ArgumentParser", "os.environ.get")
_PLAIN = (ast.Constant, ast.Name, ast.Attribute, ast.Call, ast.Subscript)


def scale_rate(editor: ScriptEditor, shape: TrainingShape) -> None:
    """Multiply the learning rate of each optimizer."""
    optimizers = list(places.optimizers(editor.script))
    for each in optimizers:
        _scale_optimizer(editor, each, torch=shape is TrainingShape.TORCH_LOOP)
    if not optimizers and not named_optimizers(editor):
        raise CannotRewrite(None, "the optimizer is made where it is not seen", code="port.rate")


def named_optimizers(editor: ScriptEditor) -> list[tuple[ast.Constant, str]]:
    """Return the optimizers that `compile` is given by name, with what makes each; those not known are left out."""
    classes = {name.lower(): name for name in _KERAS_RATES}
    given = (argument(call, 0, "optimizer") for call in editor.script.calls(".compile"))
    names = [(each, str(each.value).lower()) for each in given if isinstance(each, ast.Constant)]
    return [(each, classes[name]) for each, name in names if name in classes]


def scaled_optimizer(editor: ScriptEditor, keras: str, name: str) -> str:
    """Return what makes the optimizer of this name, with its usual rate times the number of workers."""
    return f"{keras}.optimizers.{name}(learning_rate={_KERAS_RATES[name]} * {editor.size})"


def _scale_optimizer(editor: ScriptEditor, call: ast.Call, *, torch: bool) -> None:
    rate = argument(call, 1 if torch else 0, "learning_rate", "lr")
    if rate is None:
        _add_rate(editor, call, torch=torch)
        return
    need(_is_number(editor, rate), rate, "whether this is a number or a schedule is not seen", code="port.rate")
    need(not _rates_of_groups(call), call, "parameter groups have rates of their own", code="port.rate")
    before, after = ("", "") if _binds_tighter(rate) else ("(", ")")
    editor.surround(rate, before, f"{after} * {editor.size}", SCALE)


def _add_rate(editor: ScriptEditor, call: ast.Call, *, torch: bool) -> None:
    name = editor.script.name(call.func).rpartition(".")[2]
    usual = (_TORCH_RATES if torch else _KERAS_RATES).get(name)
    open_ended = any(each.arg is None for each in call.keywords) or any(
        isinstance(each, ast.Starred) for each in call.args
    )
    need(usual is not None and not open_ended, call, f"the learning rate of {name} is not seen", code="port.rate")
    key = "lr" if torch else "learning_rate"
    editor.insert_argument(call, f"{key}={usual} * {editor.size}", SCALE)


def _is_number(editor: ScriptEditor, rate: ast.expr) -> bool:
    """Return whether a rate is surely a number: a schedule cannot be multiplied, and its steps would be fewer."""
    own = {each.name for each in ast.walk(editor.script.tree) if isinstance(each, ast.FunctionDef)}
    reached = [each for each in editor.script.reach(rate) if isinstance(each, ast.Call | ast.Lambda)]
    return all(editor.script.is_call(each, *_NUMBERS, *own) for each in reached)


def _rates_of_groups(call: ast.Call) -> bool:
    keys = (key for each in ast.walk(call) if isinstance(each, ast.Dict) for key in each.keys)
    return any(isinstance(key, ast.Constant) and key.value == "lr" for key in keys)


def _binds_tighter(rate: ast.expr) -> bool:
    if isinstance(rate, ast.BinOp):
        return isinstance(rate.op, ast.Mult | ast.Div | ast.Pow)
    return isinstance(rate, _PLAIN)
