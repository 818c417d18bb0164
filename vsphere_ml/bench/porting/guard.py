"""Step 7: only rank 0 saves."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from vsphere_ml.bench.porting import places
from vsphere_ml.bench.porting.ranks import Who, holds, otherwise
from vsphere_ml.bench.porting.steps import GUARD, FoundStep, PortingState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vsphere_ml.bench.porting.script import Script

_LEAVES = (ast.Return, ast.Continue, ast.Raise, ast.Break)


def guard(script: Script) -> FoundStep:
    """Return whether every save is guarded so that rank 0 does it, and only rank 0."""
    steps = [judge_save(script, call) for call in places.saves(script)]
    if not steps:
        return FoundStep(step=GUARD, state=PortingState.NOT_NEEDED, line=None, message="the script saves no checkpoint")
    order = {PortingState.WRONG: 0, PortingState.MISSING: 1, PortingState.FOUND: 2}
    return min(steps, key=lambda each: (order[each.state], each.line or 0))


def judge_save(script: Script, call: ast.Call) -> FoundStep:
    """Return whether a save is reached by rank 0 only; a callback that has a name is, where all lists have it so."""
    who = set(_who(script, call)) or _who_is_given(script, call)
    if Who.FIRST in who:
        return FoundStep(step=GUARD, state=PortingState.FOUND, line=call.lineno, message="guarded by rank 0")
    if Who.REST in who:
        message = "the guard is the wrong way round: every rank but 0 saves, and they overwrite each other's file"
        return FoundStep(step=GUARD, state=PortingState.WRONG, line=call.lineno, message=message)
    if Who.EACH_NODE in who:
        message = "hvd.local_rank() == 0 holds once on each node: on shared storage they overwrite each other's file"
        return FoundStep(step=GUARD, state=PortingState.WRONG, line=call.lineno, message=message)
    return FoundStep(
        step=GUARD, state=PortingState.MISSING, line=call.lineno, message="every rank saves to the same file"
    )


def _who(script: Script, node: ast.AST) -> Iterator[Who]:
    """Yield who gets to `node`, by each condition around it or before it, also where its function is called."""
    yield from _here(script, node)
    function = next((parent for parent, _ in script.above(node) if isinstance(parent, ast.FunctionDef)), None)
    if function is None:
        return
    callers = list(script.calls(function.name))
    reached = [set(_here(script, call)) for call in callers]
    if reached:
        yield from set.intersection(*reached)


def _who_is_given(script: Script, call: ast.Call) -> set[Who]:
    """Return who gets a callback by the name it is given."""
    assigned = script.parents.get(call)
    match assigned:
        case ast.Assign(targets=[ast.Name(id=name)]) if script.is_call(call, *places.CALLBACKS):
            uses = [each for each in ast.walk(script.tree) if isinstance(each, ast.Name) and each.id == name]
            loads = [set(_who(script, each)) for each in uses if isinstance(each.ctx, ast.Load)]
            return set.intersection(*loads) if loads else set()
    return set()


def _here(script: Script, node: ast.AST) -> Iterator[Who]:
    for parent, child in script.above(node):
        match parent:
            case ast.If(test=test) | ast.IfExp(test=test) if child is not test:
                yield from _of_branch(script, parent, child, test)
            case ast.BoolOp(op=ast.And(), values=values):
                before = values[: values.index(child)] if child in values else []
                yield from (who for each in before if (who := holds(script, each)) is not None)
            case ast.FunctionDef(body=body) | ast.Module(body=body) | ast.For(body=body) | ast.While(body=body):
                yield from _ranks_after_exit(script, body, child)


def _of_branch(script: Script, parent: ast.If | ast.IfExp, child: ast.AST, test: ast.expr) -> Iterator[Who]:
    who = holds(script, test)
    positive = child is parent.body or (isinstance(parent.body, list) and child in parent.body)
    who = who if positive else otherwise(who)
    if who is not None:
        yield who


def _ranks_after_exit(script: Script, body: list[ast.stmt], child: ast.AST) -> Iterator[Who]:
    """Yield who is left after `if hvd.rank() != 0: return` and its like."""
    for statement in body:
        if statement is child:
            return
        if isinstance(statement, ast.If) and not statement.orelse and _leaves(script, statement.body[-1]):
            left = otherwise(holds(script, statement.test))
            if left is not None:
                yield left


def _leaves(script: Script, statement: ast.stmt) -> bool:
    if isinstance(statement, _LEAVES):
        return True
    return isinstance(statement, ast.Expr) and script.is_call(statement.value, "sys.exit", "exit", "quit", "os._exit")
