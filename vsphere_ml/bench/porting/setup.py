"""Steps 1 to 4: Horovod begins, each process has its GPU, its learning rate and its data."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from vsphere_ml.bench.porting import places
from vsphere_ml.bench.porting.script import argument
from vsphere_ml.bench.porting.steps import INIT, PIN, SCALE, SHARD, FoundStep, PortingState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.bench.porting.script import Script

_NEEDS_INIT = ("hvd.rank", "hvd.size", "hvd.local_rank", "hvd.local_size")
_PINS = (".set_visible_devices", "torch.cuda.set_device")


def init(script: Script) -> FoundStep:
    """Return whether `hvd.init()` is called, and before anything that needs it at the script's top level."""
    first = next(script.calls("hvd.init"), None)
    if first is None:
        return FoundStep(step=INIT, state=PortingState.MISSING, line=None, message="the script never calls hvd.init()")
    for use in script.calls(*_NEEDS_INIT):
        if use.lineno < first.lineno and not _inside_function(script, use) and not _inside_function(script, first):
            message = f"{script.name(use.func)}() is called before hvd.init() in line {first.lineno}"
            return FoundStep(step=INIT, state=PortingState.WRONG, line=use.lineno, message=message)
    return FoundStep(step=INIT, state=PortingState.FOUND, line=first.lineno, message="hvd.init()")


def pin(script: Script) -> FoundStep:
    """Return whether each process sees the GPU of its local rank only."""
    for line, value in sorted(_pins(script), key=lambda each: each[0]):
        if script.mentions(value, "hvd.local_rank"):
            return FoundStep(step=PIN, state=PortingState.FOUND, line=line, message="by hvd.local_rank()")
        if script.mentions(value, "hvd.rank"):
            message = "hvd.rank() counts over all nodes; a node's GPUs are counted by hvd.local_rank()"
        else:
            message = "every process of a node is given the same GPU; hvd.local_rank() tells them apart"
        return FoundStep(step=PIN, state=PortingState.WRONG, line=line, message=message)
    message = "every process would take every GPU of its node"
    return FoundStep(step=PIN, state=PortingState.MISSING, line=None, message=message)


def _pins(script: Script) -> Iterator[tuple[int, ast.expr]]:
    for call in script.calls(*_PINS):
        value = argument(call, 0, "devices", "device")
        if value is not None and not _hides_all(value):
            yield call.lineno, value
    for node in ast.walk(script.tree):
        match node:
            case ast.Assign(targets=[ast.Subscript(slice=ast.Constant(value="CUDA_VISIBLE_DEVICES"))], value=value):
                if not (isinstance(value, ast.Constant) and value.value in {"", "-1"}):
                    yield node.lineno, value
            case ast.Assign(targets=[ast.Attribute(attr="visible_device_list")], value=value):
                yield node.lineno, value


def _hides_all(value: ast.expr) -> bool:
    return isinstance(value, ast.List) and not value.elts


def scale(script: Script) -> FoundStep:
    """Return whether the learning rate grows with the number of workers."""
    made = list(places.optimizers(script))
    for call in made:
        rate = argument(call, _rate_position(script), "learning_rate", "lr")
        states = _judge_learning_rate(script, rate) if rate is not None else None
        if states is not None:
            state, message = states
            return FoundStep(step=SCALE, state=state, line=call.lineno, message=message)
    for call in script.calls(".LearningRateWarmupCallback", ".LearningRateScheduleCallback"):
        if script.mentions(call, "hvd.size"):
            return FoundStep(step=SCALE, state=PortingState.FOUND, line=call.lineno, message="by a callback")
    line = made[0].lineno if made else next((each.lineno for each in script.calls(".compile")), None)
    message = "the learning rate is that of one worker, though the batch grows with their number"
    return FoundStep(step=SCALE, state=PortingState.MISSING, line=line, message=message)


def _rate_position(script: Script) -> int:
    return 1 if places.is_torch(script) else 0  # torch's optimizers take the parameters first


def _judge_learning_rate(script: Script, rate: ast.expr) -> tuple[PortingState, str] | None:
    if _has_division(script, rate):
        return PortingState.WRONG, "the learning rate is divided by the number of workers; it is to be multiplied"
    if script.mentions(rate, "hvd.size"):
        return PortingState.FOUND, "by hvd.size()"
    for name in ("hvd.local_size", "hvd.rank", "hvd.local_rank"):
        if script.mentions(rate, name):
            return PortingState.WRONG, f"the learning rate depends on {name}(); the number of workers is hvd.size()"
    return None


def _has_division(script: Script, rate: ast.expr) -> bool:
    return any(
        isinstance(each, ast.BinOp)
        and isinstance(each.op, ast.Div | ast.FloorDiv)
        and script.mentions(each.right, "hvd.size")
        for each in script.reach(rate)
    )


def shard(script: Script) -> FoundStep:
    """Return whether each rank reads another part of the data."""
    steps = [*_shards(script), *_samplers(script), *_slices(script), *_elastic_samplers(script)]
    if steps:
        return min(steps, key=lambda each: (each.state is PortingState.FOUND, each.line or 0))
    line = next((each.lineno for each in (*places.datasets(script), *places.fits(script))), None)
    message = "every rank would train on the same data"
    divided = next((call for call in places.fits(script) if _steps_divided(script, call)), None)
    if divided is not None:
        message = "steps are divided among the ranks, but each rank draws from all the data"
    return FoundStep(step=SHARD, state=PortingState.MISSING, line=line, message=message)


def _shards(script: Script) -> Iterator[FoundStep]:
    for call in script.calls(".shard"):
        yield _split(script, call, argument(call, 0, "num_shards"), argument(call, 1, "index"))


def _samplers(script: Script) -> Iterator[FoundStep]:
    for call in script.calls(".DistributedSampler", "DistributedSampler"):
        yield _split(script, call, argument(call, 1, "num_replicas"), argument(call, 2, "rank"))


def _elastic_samplers(script: Script) -> Iterator[FoundStep]:
    for call in script.calls("hvd.elastic.ElasticSampler"):
        yield FoundStep(step=SHARD, state=PortingState.FOUND, line=call.lineno, message="hvd.elastic.ElasticSampler")


def _slices(script: Script) -> Iterator[FoundStep]:
    """Yield slices such as `x[hvd.rank()::hvd.size()]`."""
    for node in ast.walk(script.tree):
        match node:
            case ast.Slice(lower=ast.expr() as lower, step=ast.expr() as step) if script.mentions(step, "hvd.size"):
                yield _split(script, node, step, lower)


def _split(script: Script, node: ast.expr, count: ast.expr | None, index: ast.expr | None) -> FoundStep:
    line = node.lineno
    if count is None or index is None:
        return FoundStep(step=SHARD, state=PortingState.WRONG, line=line, message="it takes hvd.size() and hvd.rank()")
    if script.mentions(count, "hvd.rank") and script.mentions(index, "hvd.size"):
        message = "number of shards and index are swapped: hvd.size(), then hvd.rank()"
    elif not script.mentions(count, "hvd.size"):
        message = "the number of shards is not hvd.size(): parts are left out or read twice"
    elif script.mentions(index, "hvd.local_rank"):
        message = "hvd.local_rank() is the same on every node, so nodes read the same shards; hvd.rank() is wanted"
    elif not script.mentions(index, "hvd.rank"):
        message = "the index is not hvd.rank(): every rank reads the same shard"
    else:
        return FoundStep(step=SHARD, state=PortingState.FOUND, line=line, message="by hvd.size() and hvd.rank()")
    return FoundStep(step=SHARD, state=PortingState.WRONG, line=line, message=message)


def _steps_divided(script: Script, call: ast.Call) -> bool:
    steps = argument(call, -1, "steps_per_epoch")
    return steps is not None and script.mentions(steps, "hvd.size")


def _inside_function(script: Script, node: ast.AST) -> bool:
    return any(isinstance(parent, ast.FunctionDef | ast.Lambda) for parent, _ in script.above(node))
