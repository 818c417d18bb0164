"""What is wrong and surely corrected: the seed's own mistakes, and a GPU that was pinned for one process."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from vsphere_ml.bench.porting.rewrite.begin import choose_keras2, refuse_other_keras
from vsphere_ml.bench.porting.rewrite.shapes import TrainingShape
from vsphere_ml.bench.porting.rewrite.source_text import CannotRewrite
from vsphere_ml.bench.porting.script import argument
from vsphere_ml.bench.porting.steps import BROADCAST, GUARD, PIN, SHARD, WRAP
from vsphere_ml.bench.porting.training import is_keras3_trap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vsphere_ml.bench.porting.rewrite.script_editor import ScriptEditor
    from vsphere_ml.bench.porting.steps import FoundStep

_PINS = (".set_visible_devices", "torch.cuda.set_device")


def rewriter(
    editor: ScriptEditor, shape: TrainingShape, found: FoundStep, rewrite: Callable[[], None]
) -> Callable[[], None]:
    """Return what corrects a step that is wrong; it raises CannotRewrite where that is not certain."""
    if found.step is GUARD:
        return rewrite
    if shape is TrainingShape.KERAS_FIT and found.step in {WRAP, BROADCAST} and is_keras3_trap(found):
        return lambda: _choose_keras2_once(editor, found)
    corrections = {SHARD: _correct_shards, PIN: _correct_pins}
    correct = corrections.get(found.step, _refuse)
    return lambda: correct(editor, found)


def _refuse(_editor: ScriptEditor, found: FoundStep) -> None:
    raise CannotRewrite(found.line, found.message, code="port.wrong")


def _choose_keras2_once(editor: ScriptEditor, found: FoundStep) -> None:
    refuse_other_keras(editor)
    if found.step is WRAP or not any(WRAP in each.steps for each in editor.edits):
        choose_keras2(editor)


def _correct_shards(editor: ScriptEditor, found: FoundStep) -> None:
    calls = [(call, 0, ("num_shards", "index")) for call in editor.script.calls(".shard")]
    samplers = editor.script.calls(".DistributedSampler", "DistributedSampler")
    calls += [(call, 1, ("num_replicas", "rank")) for call in samplers]
    if not calls:
        _refuse(editor, found)
    for call, at, names in calls:
        pair = [argument(call, at + number, name) for number, name in enumerate(names)]
        for given, wanted in zip(pair, (editor.size, editor.rank), strict=True):
            if given is None:
                raise CannotRewrite(call.lineno, found.message, code="port.wrong")
            editor.replace(given, wanted, SHARD)


def _correct_pins(editor: ScriptEditor, found: FoundStep) -> None:
    numbers = [each for call in editor.script.calls(*_PINS) for each in _gpu_numbers(editor, call)]
    if len(numbers) != 1:
        _refuse(editor, found)
    editor.replace(numbers[0], f"{editor.hvd}.local_rank()", PIN)


def _gpu_numbers(editor: ScriptEditor, call: ast.Call) -> Iterator[ast.expr]:
    """Yield what says which GPU it is, where that is `0` or `hvd.rank()`."""
    given = argument(call, 0, "devices", "device")
    for each in ast.walk(given) if given is not None else ():
        is_zero = isinstance(each, ast.Constant) and each.value == 0 and not isinstance(each.value, bool)
        if isinstance(each, ast.expr) and (is_zero or editor.script.is_call(each, "hvd.rank")):
            yield each
