"""Where a loop of the script's own makes its steps."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from vsphere_ml.bench.porting import places
from vsphere_ml.bench.porting.rewrite.source_text import CannotRewrite, need
from vsphere_ml.bench.porting.script import argument
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from vsphere_ml.bench.porting.rewrite.script_editor import ScriptEditor

_VARIABLES = ("trainable_variables", "trainable_weights")


@dataclass(frozen=True, slots=True, kw_only=True)
class _TapeStep:
    """One training step of TensorFlow: gradients are taken of variables, and applied."""

    gradient: ast.Call
    apply: ast.Call
    sources: ast.expr
    model: str  # as it is called in the step
    optimizer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _TorchSteps:
    """A training step of PyTorch: gradients are made, and the optimizer applies them."""

    optimizer: ast.Call
    backward: ast.Call
    step: ast.Call


def tape_step(editor: ScriptEditor) -> _TapeStep:
    """Return the script's one step; raises CannotRewrite when there is another number of them."""
    gradients = list(editor.script.calls(".gradient"))
    applies = list(editor.script.calls(".apply_gradients"))
    need(
        len(applies) == 1,
        applies[1] if applies[1:] else None,
        "gradients are applied in several places",
        code="port.loop",
    )
    if len(gradients) != 1:
        at = gradients[1].lineno if gradients else None
        raise CannotRewrite(at, "gradients are taken in several places, or in none that is seen", code="port.loop")
    gradient, apply = gradients[0], applies[0]
    sources = argument(gradient, 1, "sources")
    if sources is None or not isinstance(apply.func, ast.Attribute):
        raise CannotRewrite(gradient.lineno, "of what gradients are taken is not seen", code="port.loop")
    model, optimizer = _model(editor, sources), editor.source.text(apply.func.value)
    return _TapeStep(gradient=gradient, apply=apply, sources=sources, model=model, optimizer=optimizer)


def _model(editor: ScriptEditor, sources: ast.expr) -> str:
    """Return the model that variables are of."""
    attributes = (each for each in editor.script.reach(sources) if isinstance(each, ast.Attribute))
    models = {editor.source.text(each.value) for each in attributes if each.attr in _VARIABLES}
    if len(models) == 1:
        return models.pop()
    raise CannotRewrite(sources.lineno, "of which model these variables are is not seen", code="port.loop")


def step_call(editor: ScriptEditor) -> ast.Call:
    """Return the call in a loop that makes a step: of the function with the step, or the step itself."""
    call: ast.Call = tape_step(editor).apply
    for _ in range(5):  # functions that call functions
        if editor.loops(call):
            _refuse_graph(editor, call)
            return call
        function = editor.function(call)
        calls = list(editor.script.calls(function.name)) if isinstance(function, ast.FunctionDef) else []
        if len(calls) != 1:
            break
        call = calls[0]
    raise CannotRewrite(call.lineno, "the one loop that makes this step is not seen", code="port.loop")


def _refuse_graph(editor: ScriptEditor, call: ast.Call) -> None:
    function = editor.function(call)
    for each in function.decorator_list if isinstance(function, ast.FunctionDef) else ():
        name = each.func if isinstance(each, ast.Call) else each
        is_graph = editor.script.name(name).endswith("tensorflow.function")
        need(not is_graph, each, "the loop itself is inside a tf.function", code="port.loop")


def torch_steps(editor: ScriptEditor) -> _TorchSteps:
    """Return the script's one step; raises CannotRewrite when there is another number of optimizers or steps."""
    optimizers, backwards = list(places.optimizers(editor.script)), list(editor.script.calls(".backward"))
    if len(optimizers) != 1 or len(backwards) != 1:
        second = next((each.lineno for each in (*optimizers[1:], *backwards[1:])), None)
        raise CannotRewrite(second, "several optimizers or backward passes, or none that is seen", code="port.loop")
    steps = [call for call in editor.script.calls(".step") if optimizers[0] in _find_stepping(editor, call)]
    if len(steps) != 1:
        at = steps[1].lineno if steps else optimizers[0].lineno
        raise CannotRewrite(at, "the one place where the optimizer steps is not seen", code="port.loop")
    return _TorchSteps(optimizer=optimizers[0], backward=backwards[0], step=steps[0])


def stepping_optimizer(step: ast.Call) -> ast.expr:
    """Return the optimizer of `optimizer.step()` or of `scaler.step(optimizer)`."""
    if step.args:
        return step.args[0]
    if isinstance(step.func, ast.Attribute):
        return step.func.value
    raise CannotRewrite(step.lineno, "whose step this is is not seen", code="port.loop")


def _find_stepping(editor: ScriptEditor, step: ast.Call) -> list[ast.expr]:
    return editor.resolve(stepping_optimizer(step))
