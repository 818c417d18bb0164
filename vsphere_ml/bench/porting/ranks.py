"""For which ranks a condition holds."""

from __future__ import annotations

import ast
from enum import Enum, auto
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vsphere_ml.bench.porting.script import Script

_FAR = 20  # conditions inside conditions


class Who(Enum):
    """For which ranks a condition holds."""

    FIRST = auto()  # rank 0
    REST = auto()  # every other rank
    EACH_NODE = auto()  # one rank a node


def otherwise(who: Who | None) -> Who | None:
    """Return for whom a condition does not hold."""
    return {Who.FIRST: Who.REST, Who.REST: Who.FIRST}.get(who) if who is not None else None


def holds(script: Script, test: ast.expr, *, far: int = 0) -> Who | None:  # noqa: PLR0911 - one arm for each form of a condition
    """Return for whom a condition holds; None when it says nothing of ranks."""
    if far > _FAR:
        return None
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return otherwise(holds(script, operand, far=far + 1))
        case ast.BoolOp(op=ast.And(), values=values):
            return next((who for each in values if (who := holds(script, each, far=far + 1)) is not None), None)
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            return _ranks_of_comparison(script, left, operator, right)
        case ast.Call() if script.is_call(test, "hvd.rank"):
            return Who.REST  # true for every rank but 0
        case ast.Name() | ast.Attribute() | ast.Call(func=ast.Name()):
            return _ranks_of_name(script, test.func if isinstance(test, ast.Call) else test, far)
    return None


def _ranks_of_name(script: Script, name: ast.expr, far: int) -> Who | None:
    """Return for whom a name holds that can be one thing only."""
    values = script.values_of(name)
    return holds(script, values[0], far=far + 1) if len(values) == 1 else None


def _ranks_of_comparison(script: Script, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> Who | None:
    if isinstance(left, ast.Constant):
        left, right = right, left
    if not (isinstance(right, ast.Constant) and right.value == 0):
        return None
    first = _zero(script, left)
    match operator:
        case ast.Eq() | ast.LtE():
            return first
        case ast.NotEq() | ast.Gt():
            return otherwise(first)
    return None


def _zero(script: Script, node: ast.expr) -> Who | None:
    """Return whose number it is when `node` is 0."""
    if _is(script, node, "hvd.rank"):
        return Who.FIRST
    return Who.EACH_NODE if _is(script, node, "hvd.local_rank") else None


def _is(script: Script, node: ast.expr, name: str) -> bool:
    return script.is_call(node, name) or (isinstance(node, ast.Name | ast.Attribute) and script.mentions(node, name))
