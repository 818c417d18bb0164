"""The callbacks of `fit`: one that broadcasts, and those that write on rank 0 only."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from vsphere_ml.bench.porting import places
from vsphere_ml.bench.porting.rewrite.begin import refuse_other_keras
from vsphere_ml.bench.porting.rewrite.source_text import CannotRewrite, need
from vsphere_ml.bench.porting.script import argument
from vsphere_ml.bench.porting.steps import BROADCAST, GUARD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.bench.porting.rewrite.script_editor import ScriptEditor

_EACH_FOR_ITSELF = {
    "EarlyStopping": "ranks would stop after different epochs, and wait for each other for ever",
    "ReduceLROnPlateau": "ranks would train with different learning rates",
    "LearningRateScheduler": "whether its rates are those of one worker is not seen",
    "BackupAndRestore": "ranks would resume at different epochs",
}


def add_broadcast(editor: ScriptEditor) -> None:
    """Give each `fit` the callback that broadcasts after the first batch."""
    refuse_other_keras(editor)
    made = f"{editor.hvd}.callbacks.BroadcastGlobalVariablesCallback(0)"
    lists = dict[ast.List, None]()
    for call in places.fits(editor.script):
        given = argument(call, -1, "callbacks")
        if given is None:
            editor.insert_argument(call, f"callbacks=[{made}]", BROADCAST)
        else:
            lists[_callback_list(editor, given)] = None
    for each in lists:
        _insert_first(editor, each, made)
    _leave_others(editor)


def _insert_first(editor: ScriptEditor, callbacks: ast.List, made: str) -> None:
    first = callbacks.elts[0] if callbacks.elts else None
    if first is None or first.lineno == callbacks.lineno:
        editor.insert(editor.source.start(callbacks) + 1, made + (", " if first else ""), BROADCAST)
    else:
        editor.insert(editor.source.start(first), f"{made},\n{' ' * first.col_offset}", BROADCAST)


def _callback_list(editor: ScriptEditor, given: ast.expr) -> ast.List:
    match editor.resolve(given):
        case [ast.List() as found]:
            return found
        case [ast.List() as found, *appended] if all(isinstance(each, ast.Call) for each in appended):
            return found
    raise CannotRewrite(given.lineno, "where this list of callbacks is made is not seen", code="port.callback")


def _leave_others(editor: ScriptEditor) -> None:
    for name, why in _EACH_FOR_ITSELF.items():
        for call in editor.script.calls(f".{name}", name):
            editor.leave(BROADCAST, call.lineno, f"{name}: {why}", code="port.callback")


def guard_callbacks(editor: ScriptEditor, unguarded: list[ast.Call]) -> None:
    """Give only rank 0 the callbacks that write."""
    for each in (place for call in unguarded for place in _places(editor, call)):
        statement = editor.statement(each)
        if isinstance(editor.script.parents[each], ast.List):
            editor.surround(each, "*([", f"] if {editor.is_first} else [])", GUARD)
        else:
            need(isinstance(statement, ast.Expr), each, "where this callback goes is not seen", code="port.save")
            editor.indent([statement], f"if {editor.is_first}:", GUARD)


def _places(editor: ScriptEditor, call: ast.Call) -> Iterator[ast.expr]:
    """Yield where a callback, or the name that it is given, stands in a list or is added to one."""
    parent = editor.script.parents[call]
    if isinstance(parent, ast.Assign) and all(isinstance(each, ast.Name) for each in parent.targets):
        names = {each.id for each in parent.targets if isinstance(each, ast.Name)}
        yield from _loads(editor, names)
    else:
        yield call


def _loads(editor: ScriptEditor, names: set[str]) -> Iterator[ast.Name]:
    """Yield where one of these names is read."""
    for each in ast.walk(editor.script.tree):
        if isinstance(each, ast.Name) and each.id in names and isinstance(each.ctx, ast.Load):
            yield each
