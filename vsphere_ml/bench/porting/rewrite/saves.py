"""Step 7: rank 0 alone saves."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from vsphere_ml.bench.porting import guard, places
from vsphere_ml.bench.porting.rewrite.callbacks import guard_callbacks
from vsphere_ml.bench.porting.rewrite.source_text import CannotRewrite, need
from vsphere_ml.bench.porting.steps import GUARD, PortingState

if TYPE_CHECKING:
    from vsphere_ml.bench.porting.rewrite.script_editor import ScriptEditor


def guard_saves(editor: ScriptEditor) -> None:
    """Put what saves under rank 0's condition, or correct the condition that it is under."""
    callbacks = [
        each for each in editor.script.calls(*places.CALLBACKS) if _state(editor, each) is PortingState.MISSING
    ]
    guard_callbacks(editor, callbacks)
    runs = list[list[ast.stmt]]()
    for call in places.saves(editor.script):
        state = _state(editor, call)
        if state is PortingState.WRONG:
            _correct(editor, call)
        elif state is PortingState.MISSING and not editor.script.is_call(call, *places.CALLBACKS):
            _add_statement(editor, runs, _saving_statement(editor, call))
    for each in runs:
        editor.indent(each, f"if {editor.is_first}:", GUARD)


def _state(editor: ScriptEditor, call: ast.Call) -> PortingState:
    return guard.judge_save(editor.script, call).state


def _add_statement(editor: ScriptEditor, runs: list[list[ast.stmt]], statement: ast.stmt) -> None:
    """Add a statement to the run of its neighbour before it, else as a run of its own."""
    block = editor.block(statement)
    at = block.index(statement)
    for run in runs:
        if statement in run:
            return
        if at > 0 and block[at - 1] is run[-1]:
            run.append(statement)
            return
    runs.append([statement])


def _saving_statement(editor: ScriptEditor, call: ast.Call) -> ast.stmt:
    """Return the statement that saves, with the file that is opened for it."""
    statement = editor.statement(call)
    need(
        isinstance(statement, ast.Expr) and statement.value is call,
        call,
        "a save inside another statement",
        code="port.save",
    )
    parent = editor.script.parents.get(statement)
    while isinstance(parent, ast.With):
        need(
            parent.body == [statement], call, "more than the save is done with what is opened for it", code="port.save"
        )
        statement, parent = parent, editor.script.parents.get(parent)
    return statement


def _correct(editor: ScriptEditor, call: ast.Call) -> None:
    """Turn `hvd.rank() != 0`, which NVIDIA's lab guide prints, and `hvd.local_rank() == 0` into `hvd.rank() == 0`."""
    statement = editor.statement(call)
    parent = editor.script.parents.get(statement)
    match parent:
        case ast.If(test=ast.Compare(left=ast.Call() as left, ops=[ast.Eq() | ast.NotEq()]) as test, orelse=[]) if (
            statement in parent.body and all(_is_save(editor, each) for each in parent.body)
        ):
            need(
                editor.script.is_call(left, "hvd.rank", "hvd.local_rank"), test, "not corrected here", code="port.wrong"
            )
            editor.replace(test, editor.is_first, GUARD)
        case _:
            raise CannotRewrite(call.lineno, guard.judge_save(editor.script, call).message, code="port.wrong")


def _is_save(editor: ScriptEditor, statement: ast.stmt) -> bool:
    saves = set(places.saves(editor.script))
    return isinstance(statement, ast.Expr) and statement.value in saves
