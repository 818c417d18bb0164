"""Steps 5 and 6: gradients are averaged over the ranks, and all start from rank 0's state."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from vsphere_ml.bench.porting import places
from vsphere_ml.bench.porting.rewrite import rates
from vsphere_ml.bench.porting.rewrite.begin import choose_keras2, module_name, refuse_other_keras
from vsphere_ml.bench.porting.rewrite.loops import step_call, stepping_optimizer, tape_step, torch_steps
from vsphere_ml.bench.porting.rewrite.source_text import CannotRewrite, need
from vsphere_ml.bench.porting.script import argument
from vsphere_ml.bench.porting.steps import BROADCAST, SCALE, WRAP

if TYPE_CHECKING:
    from vsphere_ml.bench.porting.rewrite.script_editor import ScriptEditor
    from vsphere_ml.bench.porting.steps import PortingStep

_CLIPS = (".unscale_", ".clip_grad_norm_", "clip_grad_norm_", ".clip_grad_value_", "clip_grad_value_")
_OF_KERAS3 = 3
VARIABLES = "tf_variables"


def wrap_tape(editor: ScriptEditor) -> None:
    """Average what the tape gives. With Keras 3 it is asked for the TensorFlow variables inside Keras' own."""
    found = tape_step(editor)
    statement = editor.statement(found.gradient)
    if not isinstance(found.gradient.func, ast.Attribute):
        raise CannotRewrite(found.gradient.lineno, "which tape this is is not seen", code="port.loop")
    tape = editor.source.text(found.gradient.func.value)
    need(not _is_recording(editor, found.gradient, tape), statement, "the tape is recording still", code="port.loop")
    editor.insert_before(statement, [f"{tape} = {editor.hvd}.DistributedGradientTape({tape})"], WRAP)
    if editor.keras >= _OF_KERAS3:
        name = _define_variables(editor, WRAP)
        editor.surround(found.sources, f"{name}(", ")", WRAP)


def _is_recording(editor: ScriptEditor, gradient: ast.Call, tape: str) -> bool:
    withs = (parent for parent, _ in editor.script.above(gradient) if isinstance(parent, ast.With))
    names = (each.optional_vars for parent in withs for each in parent.items)
    return any(each is not None and ast.unparse(each) == tape for each in names)


def _define_variables(editor: ScriptEditor, step: PortingStep) -> str:
    """Return the function that gives TensorFlow's variables; it is written once, before what makes a step."""
    own = {each.name for each in editor.script.tree.body if isinstance(each, ast.FunctionDef)}
    name = VARIABLES if VARIABLES in own else editor.fresh(VARIABLES)
    if name in own or any(f"def {name}(" in each.text for each in editor.edits):
        return name
    tf = module_name(editor, "tensorflow", "tf")
    unit = editor.indentation_unit
    lines = [
        f"def {name}(variables):",
        f'{unit}"""Return the TensorFlow variables inside those of Keras 3; Horovod knows no others."""',
        f"{unit}return [each if isinstance(each, {tf}.Variable) else each.value for each in variables]",
    ]
    editor.insert(_top_level_place(editor), "".join(f"{each}\n" for each in (*lines, "", "")), step)
    return name


def _top_level_place(editor: ScriptEditor) -> int:
    """Return where the first definition or statement begins that has to do with steps, at the top level."""
    found = (tape_step(editor).gradient, step_call(editor))
    tops = [
        next(child for parent, child in editor.script.above(each) if isinstance(parent, ast.Module)) for each in found
    ]
    first = min((each for each in tops if isinstance(each, ast.stmt)), key=lambda each: each.lineno)
    decorators = first.decorator_list if isinstance(first, ast.FunctionDef | ast.ClassDef) else []
    line = min([first.lineno, *(each.lineno for each in decorators)])
    return editor.source.starts[line - 1]


def broadcast_after_first_step(editor: ScriptEditor) -> None:
    """Broadcast the variables after the first step: only then those of the optimizer are there."""
    found, call = tape_step(editor), step_call(editor)
    model, optimizer = (_name_in_loop(editor, each, call) for each in (found.model, found.optimizer))
    statement, outermost = editor.statement(call), editor.loops(call)[-1]
    need(
        isinstance(statement, ast.Expr | ast.Assign | ast.AugAssign),
        statement,
        "a step inside another statement",
        code="port.loop",
    )
    name, unit = editor.fresh("is_first_step"), editor.indentation_unit
    broadcasts = [
        f"{unit}{editor.hvd}.broadcast_variables({each}, root_rank=0)" for each in _states(editor, model, optimizer)
    ]
    editor.insert_before(outermost, [f"{name} = True"], BROADCAST)
    editor.insert_after(statement, [f"if {name}:", *broadcasts, f"{unit}{name} = False"], BROADCAST)


def _states(editor: ScriptEditor, model: str, optimizer: str) -> tuple[str, str]:
    if editor.keras < _OF_KERAS3:
        return f"{model}.variables", f"{optimizer}.variables()"
    name = _define_variables(editor, BROADCAST)
    return f"{name}({model}.variables)", f"{name}({optimizer}.variables)"


def _name_in_loop(editor: ScriptEditor, name: str, call: ast.Call) -> str:
    """Return what the loop calls something of the step's; raises CannotRewrite when it cannot be seen from there."""
    apply = tape_step(editor).apply
    inner, outer = editor.function(apply), editor.function(call)
    root = name.partition(".")[0]
    if inner is outer:
        return name
    if isinstance(inner, ast.FunctionDef) and root in _parameters(inner):
        return _name_given(inner, call, name)
    need(root not in _names_stored(inner), call, f"`{root}` is not seen in the loop", code="port.loop")
    need(
        outer is None or root not in _names_stored(outer) or inner in set(ast.walk(outer)),
        call,
        f"another `{root}`",
        code="port.loop",
    )
    return name


def _name_given(function: ast.FunctionDef, call: ast.Call, name: str) -> str:
    parameters = _parameters(function)
    at = parameters.index(name) if name in parameters else -1
    value = argument(call, at, name) if at >= 0 else None
    if isinstance(value, ast.Name | ast.Attribute):
        return ast.unparse(value)
    raise CannotRewrite(call.lineno, f"what `{name}` is in the loop is not seen", code="port.loop")


def _parameters(function: ast.FunctionDef) -> list[str]:
    return [each.arg for each in (*function.args.posonlyargs, *function.args.args)]


def _names_stored(function: ast.AST | None) -> set[str]:
    stored = (each for each in ast.walk(function) if isinstance(each, ast.Name)) if function is not None else ()
    return {each.id for each in stored if isinstance(each.ctx, ast.Store)}


def wrap_optimizer(editor: ScriptEditor) -> None:
    """Make `fit` average gradients: Keras 2, and Horovod's optimizer around the script's."""
    refuse_other_keras(editor)
    if editor.keras >= _OF_KERAS3:
        choose_keras2(editor)
    named, made = rates.named_optimizers(editor), list(places.optimizers(editor.script))
    if not (named or made):
        editor.leave(WRAP, None, "the optimizer is made where it is not seen", code="port.loop")
    for each, name in named:
        keras = f"{module_name(editor, 'tensorflow', 'tf')}.keras"
        text = rates.scaled_optimizer(editor, keras, name)
        editor.replace(each, f"{editor.hvd}.DistributedOptimizer({text})", SCALE, WRAP)
    for call in made:
        editor.surround(call, f"{editor.hvd}.DistributedOptimizer(", ")", WRAP)


def wrap_torch(editor: ScriptEditor) -> None:
    """Wrap the optimizer where it is made; what comes between backward and step waits for the exchange."""
    found = torch_steps(editor)
    name, model = _torch_names(editor, found.optimizer)
    statement = editor.statement(found.optimizer)
    wrapped = f"{editor.hvd}.DistributedOptimizer({name}, named_parameters={model}.named_parameters())"
    editor.insert_after(statement, [f"{name} = {wrapped}"], WRAP)
    _exchange_before(editor, found.backward, found.step)


def broadcast_torch(editor: ScriptEditor) -> None:
    """Broadcast the model as soon as the optimizer is there, which has no state yet.

    To broadcast what is not there, Horovod 0.28.1 makes a step with gradients of zero: Adam would count one too many.
    """
    optimizer = torch_steps(editor).optimizer
    _, model = _torch_names(editor, optimizer)
    line = f"{editor.hvd}.broadcast_parameters({model}.state_dict(), root_rank=0)"
    editor.insert_after(editor.statement(optimizer), [line], BROADCAST)


def _torch_names(editor: ScriptEditor, optimizer: ast.Call) -> tuple[str, str]:
    """Return the names of the optimizer and of the model whose parameters it has."""
    statement, parameters = editor.statement(optimizer), argument(optimizer, 0, "params")
    match statement:
        case ast.Assign(targets=[ast.Name() | ast.Attribute() as target], value=value) if value is optimizer:
            pass
        case _:
            raise CannotRewrite(
                optimizer.lineno, "the optimizer is not given a name where it is made", code="port.loop"
            )
    match parameters:
        case ast.Call(func=ast.Attribute(attr="parameters", value=ast.Name() | ast.Attribute() as model), args=[]):
            return editor.source.text(target), editor.source.text(model)
    raise CannotRewrite(
        optimizer.lineno, "of which model the optimizer has the parameters is not seen", code="port.loop"
    )


def _exchange_before(editor: ScriptEditor, backward: ast.Call, step: ast.Call) -> None:
    """Finish the exchange before gradients are clipped or unscaled, and do not exchange again in the step."""
    statement = editor.statement(step)
    block = editor.block(statement)
    before = block[: block.index(statement)]
    made = next((each for each in before if backward in set(ast.walk(each)) and not _is_branch(each)), None)
    need(made is not None, step, "gradients of several passes are added up before this step", code="port.loop")
    clips = [each for each in before[before.index(made) + 1 if made else 0 :] if _is_clipped(editor, each)]
    scaled = bool(step.args)
    if not (clips or scaled):
        return
    need(isinstance(statement, ast.Expr), step, "the step is inside another statement", code="port.loop")
    optimizer = editor.source.text(stepping_optimizer(step))
    first = clips[0] if clips else statement
    header = f"with {optimizer}.skip_synchronize():"
    editor.insert_before(first, [f"{optimizer}.synchronize()"], WRAP)
    editor.indent([statement], header, WRAP)


def _is_branch(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If | ast.For | ast.While | ast.Try | ast.FunctionDef)


def _is_clipped(editor: ScriptEditor, statement: ast.stmt) -> bool:
    return any(editor.script.is_call(each, *_CLIPS) for each in ast.walk(statement))
