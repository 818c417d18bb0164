"""A script as the checks see it: its calls by full name, and what a name can stand for."""

from __future__ import annotations

import ast
import warnings
from collections import defaultdict
from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias

from vsphere_ml.core.diagnostics import mistake
from vsphere_ml.core.errors import ConfigError
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# A name and the function that it is local to; None for a name of the script, and for attributes.
_Key: TypeAlias = "tuple[ast.FunctionDef | None, str]"

HOROVOD = "horovod"
HVD = "hvd"
_FAR = 12  # names followed from one to the next


@dataclass(frozen=True, slots=True)
class Script:
    """The tree of a script, with its imports and assignments gathered. Order of execution is not modelled."""

    tree: ast.Module
    imports: dict[str, str] = field(default_factory=dict)  # local name to full name
    values: dict[_Key, list[ast.expr]] = field(default_factory=lambda: defaultdict(list))  # what a name can be
    declared: dict[_Key, ast.Global | ast.Nonlocal] = field(default_factory=dict)
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)
    called: list[tuple[str, ast.Call]] = field(default_factory=list)  # in the text's order, by full name

    def calls(self, *endings: str) -> Iterator[ast.Call]:
        """Yield calls, in the text's order, by their full name; what begins with a dot is the end of one."""
        yield from (call for name, call in self.called if _ends(name, endings))

    def is_call(self, node: ast.AST, *endings: str) -> bool:
        """Return whether `node` calls one of these."""
        if not isinstance(node, ast.Call):
            return False
        return _ends(self.name(node.func), endings)

    def name(self, node: ast.AST) -> str:
        """Return an expression's dotted name, `hvd.` for anything of Horovod's; `?.x` for a method of a value."""
        match node:
            case ast.Name(id=local):
                return self.imports.get(local, local)
            case ast.Attribute(value=value, attr=attribute):
                return f"{self.name(value)}.{attribute}"
        return "?"

    def mentions(self, node: ast.AST, *names: str) -> bool:
        """Return whether the value of `node` depends on a call of one of these, followed through names."""
        return any(self.is_call(each, *names) for each in self.reach(node))

    def reach(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield everything an expression's value can be made of: its parts, and the values of the names in it."""
        seen: set[_Key] = set()
        waiting = [(node, 0)]
        while waiting:
            root, far = waiting.pop()
            for each in ast.walk(root):
                yield each
                key = self._key(each)
                if key is not None and key not in seen and far < _FAR:
                    seen.add(key)
                    waiting += [(value, far + 1) for value in self.values[key]]

    def values_of(self, node: ast.AST) -> Sequence[ast.expr]:
        """Return what a name or an attribute can stand for where it is used; nothing for what is bound nowhere."""
        key = self._key(node)
        return () if key is None else self.values[key]

    def above(self, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        """Yield each node around `node` with the child it comes from, innermost first."""
        child = node
        while child in self.parents:
            yield self.parents[child], child
            child = self.parents[child]

    def _key(self, node: ast.AST) -> _Key | None:
        """Return what a name is known by: the innermost function around it that binds it, or the script, has it."""
        if not isinstance(node, ast.Name | ast.Attribute):
            return None
        name = ast.unparse(node)
        scopes = (*self.functions(node), None) if isinstance(node, ast.Name) else (None,)
        return next(((scope, name) for scope in scopes if (scope, name) in self.values), None)

    def functions(self, node: ast.AST) -> list[ast.FunctionDef]:
        """Return the functions around a node, innermost first."""
        return [parent for parent, _ in self.above(node) if isinstance(parent, ast.FunctionDef)]


def _ends(name: str, endings: tuple[str, ...]) -> bool:
    return any(name.endswith(each) if each.startswith(".") else name == each for each in endings)


def parse(content: bytes, file: str) -> Script:
    """Return the script. Raises ConfigError with file and line when it is no Python that this interpreter reads."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # doubtful escapes are the author's business
            tree = ast.parse(content, file)
    except SyntaxError as error:
        raise _unreadable_error(file, error.lineno, error.msg) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise _unreadable_error(file, None, str(error) or "nested too deep") from error
    script = Script(tree)
    try:
        _gather(script)
    except RecursionError as error:
        raise _unreadable_error(file, None, "nested too deep") from error
    return script


def _unreadable_error(file: str, line: int | None, message: str) -> ConfigError:
    problem = mistake(file, line, message)
    return ConfigError(
        f"{file} cannot be read as Python",
        problems=(problem,),
        code="script.invalid",
        target=file,
        hint=f"python3 -m py_compile {file}",
    )


def _gather(script: Script) -> None:
    for node in ast.walk(script.tree):
        for child in ast.iter_child_nodes(node):
            script.parents[child] = node
        match node:
            case ast.Import(names=names):
                for each in names:
                    local = each.asname or each.name.partition(".")[0]
                    script.imports[local] = _canonical(each.name if each.asname else local)
            case ast.ImportFrom(module=str(module), names=names):
                for each in names:
                    script.imports[each.asname or each.name] = _canonical(f"{module}.{each.name}")
    found = (each for each in script.parents if isinstance(each, ast.Call))
    script.called.extend((script.name(each.func), each) for each in sorted(found, key=_place))
    for node in ast.walk(script.tree):
        if isinstance(node, ast.Global | ast.Nonlocal):
            function = next(iter(script.functions(node)), None)
            script.declared.update({(function, name): node for name in node.names})
    for node in ast.walk(script.tree):
        _assign(script, node)


def _place(call: ast.Call) -> tuple[int, int]:
    return call.lineno, call.col_offset


def _canonical(name: str) -> str:
    """Return `hvd` for each of Horovod's modules for a framework, and `hvd.x` for what is in it."""
    parts = name.split(".")
    if parts[0] != HOROVOD:
        return name
    rest = [each for each in parts[1:] if each not in {"tensorflow", "keras", "torch", "mxnet", "common"}]
    return ".".join([HVD, *rest])


def _assign(script: Script, node: ast.AST) -> None:
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                _bind(script, target, value)
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
            _bind(script, target, value)
        case ast.AugAssign(target=target, value=value):
            _bind(script, target, value)
        case ast.For(target=target, iter=value) | ast.withitem(optional_vars=ast.expr() as target, context_expr=value):
            _bind(script, target, value)
        case ast.Call(func=ast.Attribute(value=ast.Name() as target, attr="append" | "extend" | "insert"), args=args):
            for each in args:
                _bind(script, target, each)
        case ast.FunctionDef(name=name):
            returned = (each.value for each in ast.walk(node) if isinstance(each, ast.Return) and each.value)
            script.values[_scope(script, node, name), name].extend(returned)
            _bind_parameters(script, node)


def _bind(script: Script, target: ast.expr, value: ast.expr) -> None:
    match target, value:
        case ast.Tuple(elts=names), ast.Tuple(elts=values) if len(names) == len(values):
            for each, one in zip(names, values, strict=True):
                _bind(script, each, one)
        case ast.Tuple(elts=names) | ast.List(elts=names), _:
            for each in names:
                _bind(script, each, value)
        case ast.Name(id=name), _:
            script.values[_scope(script, target, name), name].append(value)
        case ast.Attribute(), _:  # an object's, in whatever function
            script.values[None, ast.unparse(target)].append(value)


def _scope(script: Script, target: ast.AST, name: str) -> ast.FunctionDef | None:
    """Return the function whose name it is; None for one of the script's, or declared to be."""
    for function in script.functions(target):
        declared = script.declared.get((function, name))
        if not isinstance(declared, ast.Nonlocal):
            return None if declared else function
    return None


def _bind_parameters(script: Script, function: ast.FunctionDef) -> None:
    """A parameter can be whatever the script's own calls give it."""
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    for call in script.calls(function.name):
        for name, value in zip(names, call.args, strict=False):
            script.values[function, name].append(value)
        for keyword in call.keywords:
            if keyword.arg is not None:
                script.values[function, keyword.arg].append(keyword.value)


def argument(call: ast.Call, position: int, *names: str) -> ast.expr | None:
    """Return the argument given at this position or by one of these names."""
    for keyword in call.keywords:
        if keyword.arg in names:
            return keyword.value
    return call.args[position] if 0 <= position < len(call.args) else None
