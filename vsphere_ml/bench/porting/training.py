"""Steps 5 and 6: gradients are averaged, and all ranks start from the same state."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from vsphere_ml.bench.porting import places
from vsphere_ml.bench.porting.script import argument
from vsphere_ml.bench.porting.steps import BROADCAST, WRAP, FoundStep, PortingState

if TYPE_CHECKING:
    from vsphere_ml.bench.porting.script import Script

_OPTIMIZER = "hvd.DistributedOptimizer"
_TAPE = "hvd.DistributedGradientTape"
_BY_HAND = ("hvd.allreduce", "hvd.grouped_allreduce", "hvd.allreduce_", "hvd.grouped_allreduce_")
_CALLBACK = ("hvd.callbacks.BroadcastGlobalVariablesCallback", "hvd.BroadcastGlobalVariablesCallback")
_BROADCASTS = (
    "hvd.broadcast_variables",
    "hvd.broadcast_global_variables",
    "hvd.BroadcastGlobalVariablesHook",
    "hvd.broadcast_parameters",
    "hvd.broadcast_object",
)
_ELASTIC = tuple(f"hvd.elastic.{each}State" for each in ("Keras", "TensorFlowKeras", "TensorFlow", "Torch", "Object"))
_KERAS3 = "with Keras 3 (TensorFlow 2.16 and newer)"
_FIT = (
    f"{_KERAS3} Horovod's optimizer and fit average nothing, and say nothing: train in a loop with "
    "hvd.DistributedGradientTape, or take tf-keras and TF_USE_LEGACY_KERAS=1"
)
_CALLBACK_FAILS = f"{_KERAS3} this callback fails with AttributeError: broadcast the variables by hand"
_TAPE_FAILS = f"{_KERAS3} the tape fails on Keras' variables: give it [v.value for v in model.trainable_variables]"


def is_keras3_trap(found: FoundStep) -> bool:
    """Return whether a step is wrong for Keras 3 alone, in a script that trains by `fit`."""
    return found.state is PortingState.WRONG and found.message in {_FIT, _CALLBACK_FAILS}


def wrap(script: Script, *, keras3: bool) -> FoundStep:
    """Return whether gradients are averaged over the ranks, once, and by a way that works on this Keras."""
    wrapped, taped = next(script.calls(_OPTIMIZER), None), next(script.calls(_TAPE), None)
    if wrapped is not None and taped is not None:
        message = f"the tape in line {taped.lineno} averages too: the gradients are exchanged twice"
        return FoundStep(step=WRAP, state=PortingState.WRONG, line=wrapped.lineno, message=message)
    if wrapped is not None:
        return _find_optimizer(script, wrapped, keras3=keras3)
    if taped is not None:
        return _find_tape(script, taped, keras3=keras3)
    by_hand = _averaged_by_hand(script)
    if by_hand is not None:
        return FoundStep(step=WRAP, state=PortingState.FOUND, line=by_hand.lineno, message=script.name(by_hand.func))
    line = next((call.lineno for call in places.optimizers(script)), None)
    return FoundStep(
        step=WRAP, state=PortingState.MISSING, line=line, message="each rank would train a model of its own"
    )


def _averaged_by_hand(script: Script) -> ast.Call | None:
    """Return the call that averages what is applied. A loss that is averaged to be printed is another matter."""
    for call in script.calls(*_BY_HAND):
        of_gradients = any(isinstance(each, ast.Attribute) and each.attr == "grad" for each in script.reach(call))
        if of_gradients or any(call in script.reach(applied) for applied in places.gradient_loops(script)):
            return call
    return None


def _find_optimizer(script: Script, call: ast.Call, *, keras3: bool) -> FoundStep:
    def wrong(line: int, message: str) -> FoundStep:
        return FoundStep(step=WRAP, state=PortingState.WRONG, line=line, message=message)

    if isinstance(script.parents.get(call), ast.Expr):
        return wrong(call.lineno, "the wrapped optimizer is thrown away; its result is the optimizer to use")
    for compiled in script.calls(".compile"):
        optimizer = argument(compiled, 0, "optimizer")
        if optimizer is not None and not script.mentions(optimizer, _OPTIMIZER):
            return wrong(compiled.lineno, f"the model is compiled with another optimizer than line {call.lineno} wraps")
    fit = next(places.fits(script), None)
    if fit is not None and not places.is_torch(script) and keras3:
        return wrong(fit.lineno, _FIT)
    return FoundStep(step=WRAP, state=PortingState.FOUND, line=call.lineno, message=_OPTIMIZER)


def _find_tape(script: Script, call: ast.Call, *, keras3: bool) -> FoundStep:
    if isinstance(script.parents.get(call), ast.Expr):
        message = "the wrapped tape is thrown away; its result is the tape to use"
        return FoundStep(step=WRAP, state=PortingState.WRONG, line=call.lineno, message=message)
    fit = next(places.fits(script), None)
    if fit is not None and not any(places.gradient_loops(script)):
        message = "fit does not use this tape: nothing is averaged"
        return FoundStep(step=WRAP, state=PortingState.WRONG, line=fit.lineno, message=message)
    for gradient in script.calls(".gradient"):
        sources = argument(gradient, 1, "sources")
        if sources is not None and keras3 and _keras_variables(script, sources):
            return FoundStep(step=WRAP, state=PortingState.WRONG, line=gradient.lineno, message=_TAPE_FAILS)
    return FoundStep(step=WRAP, state=PortingState.FOUND, line=call.lineno, message=_TAPE)


def _keras_variables(script: Script, sources: ast.expr) -> bool:
    """Return whether these are a model's variables as Keras gives them, and not the TensorFlow variables in them."""
    reached = list(script.reach(sources))
    inner = any(isinstance(each, ast.Attribute) and each.attr in {"value", "_value"} for each in reached)
    full = any(isinstance(each, ast.Attribute) and each.attr == "trainable_variables" for each in reached)
    return full and not inner


def broadcast(script: Script, *, keras3: bool) -> FoundStep:
    """Return whether every rank starts from rank 0's weights."""
    by_callback = next(script.calls(*_CALLBACK), None)
    by_hand = next(script.calls(*_BROADCASTS), None)
    if by_hand is not None:
        return _by_hand(script, by_hand)
    if by_callback is not None:
        return _by_callback(script, by_callback, keras3=keras3)
    elastic = next(script.calls(*_ELASTIC), None)
    if elastic is not None:
        return FoundStep(
            step=BROADCAST, state=PortingState.FOUND, line=elastic.lineno, message=_elastic(script, elastic)
        )
    line = next((call.lineno for call in (*places.fits(script), *places.gradient_loops(script))), None)
    message = "each rank would start from random weights of its own"
    return FoundStep(step=BROADCAST, state=PortingState.MISSING, line=line, message=message)


def _elastic(script: Script, call: ast.Call) -> str:
    name = script.name(call.func)
    # Seen with Horovod 0.28.1: its constructor broadcasts at once, while the old ranks wait to agree on the state.
    warning = (
        "; it deadlocks when ranks are added, hvd.elastic.ObjectState does not" if "TensorFlowState" in name else ""
    )
    return f"{name}, which all ranks agree on{warning}"


def _by_hand(script: Script, call: ast.Call) -> FoundStep:
    position = 0 if script.is_call(call, "hvd.broadcast_global_variables", "hvd.BroadcastGlobalVariablesHook") else 1
    root = argument(call, position, "root_rank")
    if isinstance(root, ast.Constant) and root.value != 0:
        message = f"the state comes from rank {root.value!r}, checkpoints from rank 0"
        return FoundStep(step=BROADCAST, state=PortingState.WRONG, line=call.lineno, message=message)
    return FoundStep(step=BROADCAST, state=PortingState.FOUND, line=call.lineno, message=script.name(call.func))


def _by_callback(script: Script, call: ast.Call, *, keras3: bool) -> FoundStep:
    def wrong(message: str) -> FoundStep:
        return FoundStep(step=BROADCAST, state=PortingState.WRONG, line=call.lineno, message=message)

    root = argument(call, 0, "root_rank")
    if isinstance(root, ast.Constant) and root.value != 0:
        return wrong(f"the state comes from rank {root.value!r}, checkpoints from rank 0")
    lists = [given for fit in places.fits(script) if (given := argument(fit, -1, "callbacks")) is not None]
    if not any(script.mentions(given, *_CALLBACK) for given in lists):
        return wrong("the callback is given to no fit, so it never runs")
    if keras3:
        return wrong(_CALLBACK_FAILS)
    return FoundStep(step=BROADCAST, state=PortingState.FOUND, line=call.lineno, message=script.name(call.func))
