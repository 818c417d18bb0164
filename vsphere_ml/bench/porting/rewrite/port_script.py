"""A script ported to Horovod, as far as that can be done surely."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.bench.porting.check import NEWEST_KERAS, PortingCheck, check
from vsphere_ml.bench.porting.places import wants_legacy_keras
from vsphere_ml.bench.porting.rewrite import begin, callbacks, corrections, data_shards, gradients, rates, saves
from vsphere_ml.bench.porting.rewrite.script_editor import ScriptEditor
from vsphere_ml.bench.porting.rewrite.shapes import TrainingShape, training_shape
from vsphere_ml.bench.porting.rewrite.source_text import CannotRewrite, SourceText
from vsphere_ml.bench.porting.script import parse
from vsphere_ml.bench.porting.steps import BROADCAST, GUARD, INIT, PIN, SCALE, SHARD, WRAP, PortingState
from vsphere_ml.core.diagnostics import Diagnostic
from vsphere_ml.core.errors import BenchError
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from vsphere_ml.bench.porting.rewrite.source_text import TextEdit
    from vsphere_ml.bench.porting.steps import FoundStep, PortingStep

    Rewriter = Callable[[], None]
_CODES = {PortingState.MISSING: "port.missing", PortingState.WRONG: "port.wrong"}
_GOOD = {PortingState.FOUND, PortingState.NOT_NEEDED}


@dataclass(frozen=True, slots=True, kw_only=True)
class PortedScript:
    """A script, what it becomes, and what is left to the user."""

    file: str
    before: bytes
    after: bytes
    source: SourceText
    edits: tuple[TextEdit, ...]
    left: tuple[Diagnostic, ...]
    checked: PortingCheck

    @property
    def is_unchanged(self) -> bool:
        return self.before == self.after

    @property
    def shape(self) -> TrainingShape:
        return training_shape(parse(self.before, self.file), self.file)

    @property
    def takes_tf_keras(self) -> bool:
        """Whether it trains with Keras 2 beside a TensorFlow that brings Keras 3."""
        return b"TF_USE_LEGACY_KERAS" in self.after


def port(content: bytes, file: str, *, keras: int = NEWEST_KERAS) -> PortedScript:
    """Return the script with every step that it misses. Errors as `check`, and those of `training_shape`.

    A step is left to the user, and named, where its place is not certain. A script that has all steps is unchanged.
    """
    found = check(content, file, keras=keras)
    if found.is_complete:
        source = SourceText(content)
        return PortedScript(file=file, before=content, after=content, source=source, edits=(), left=(), checked=found)
    editor = _make_editor(content, file, keras)
    _rewrite_steps(editor, found)
    after = editor.source.edit(editor.edits)
    checked = check(after, file, keras=keras)
    left = (*(problem for _, problem in editor.left), *_find_unexplained(editor, checked))
    return PortedScript(
        file=file,
        before=content,
        after=after,
        source=editor.source,
        edits=tuple(editor.edits),
        left=tuple(sorted(left, key=lambda each: (each.target, each.line or 0))),
        checked=checked,
    )


def left_error(ported: PortedScript) -> BenchError | None:
    """Return the error of a script that is not ported to its end; None when it is."""
    if not ported.left:
        return None
    number = len(ported.left)
    return BenchError(
        f"{ported.file}: {number} {'place is' if number == 1 else 'places are'} left to you",
        code="port.left",
        target=ported.file,
        details=tuple(str(each) for each in ported.left),
        hint="edit them, then `vsml bench check` the script",
    )


def _make_editor(content: bytes, file: str, keras: int) -> ScriptEditor:
    script = parse(content, file)
    return ScriptEditor(file, script, SourceText(content), 2 if wants_legacy_keras(script) else keras)


def _rewrite_steps(editor: ScriptEditor, found: PortingCheck) -> None:
    shape = training_shape(editor.script, editor.file)
    rewriters = _rewriters(editor, shape)
    for each in found.found:
        if each.state is PortingState.MISSING:
            _try(editor, each.step, rewriters[each.step.number])
        elif each.state is PortingState.WRONG:
            _try(editor, each.step, corrections.rewriter(editor, shape, each, rewriters[each.step.number]))


def _rewriters(editor: ScriptEditor, shape: TrainingShape) -> dict[int, Rewriter]:
    wrap = {
        TrainingShape.TF_LOOP: (gradients.wrap_tape, gradients.broadcast_after_first_step),
        TrainingShape.KERAS_FIT: (gradients.wrap_optimizer, callbacks.add_broadcast),
        TrainingShape.TORCH_LOOP: (gradients.wrap_torch, gradients.broadcast_torch),
    }[shape]
    return {
        INIT.number: lambda: begin.start_horovod(editor, shape),
        PIN.number: lambda: begin.pin_gpu(editor, shape),
        SCALE.number: lambda: rates.scale_rate(editor, shape),
        SHARD.number: lambda: data_shards.shard_data(editor, shape),
        WRAP.number: lambda: wrap[0](editor),
        BROADCAST.number: lambda: wrap[1](editor),
        GUARD.number: lambda: saves.guard_saves(editor),
    }


def _try(editor: ScriptEditor, step: PortingStep, rewriter: Rewriter) -> None:
    """Make a step's edits: all of them, or none and a note."""
    edits = len(editor.edits)
    try:
        rewriter()
    except CannotRewrite as error:
        del editor.edits[edits:]
        editor.leave(step, error.line, error.message, code=error.code)


def _find_unexplained(editor: ScriptEditor, checked: PortingCheck) -> list[Diagnostic]:
    """Return what the check still finds in steps of which nothing was left."""
    explained = {step.number for step, _ in editor.left}
    bad = [each for each in checked.found if each.state not in _GOOD and each.step.number not in explained]
    return [_of_check(editor.file, each) for each in bad]


def _of_check(file: str, found: FoundStep) -> Diagnostic:
    target = f"step {found.step.number}"
    return Diagnostic(code=_CODES[found.state], target=target, file=file, line=found.line, message=found.message)
