"""The language of templates: Jinja2's own sandbox, cut down to filling in a text, and bounded in work and size.

Jinja2's sandbox (3.1) keeps a template away from Python's insides, and nothing else: `{{ "x" * 10**10 }}` takes all the
memory there is, nested loops take for ever, and `include` reads files. So a template may use only what is named here,
and everything that can grow is paid for from a budget before it is done.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, cast

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.filters import FILTERS
from jinja2.meta import TrackingCodeGenerator
from jinja2.runtime import LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.tests import TESTS
from jinja2.visitor import NodeTransformer

from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

BUDGET = 1 << 22  # steps of a rendering: a comparison, a character that is copied, a turn of a loop
LONGEST = 1 << 22  # characters of a rendered text: /etc/hosts of 10,000 nodes has a quarter of it
_BITS = 1024  # of a number
_MOST_NODES = 10_000  # of the syntax tree: compiling as many takes half a second

_NODES = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.Name, nodes.Const, nodes.Tuple, nodes.List, nodes.Dict),
    *(nodes.Pair, nodes.Keyword, nodes.CondExpr, nodes.Filter, nodes.Test, nodes.Getattr, nodes.Getitem, nodes.Slice),
    *(nodes.For, nodes.If, nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.Neg, nodes.Pos),
    *(nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Pow, nodes.Concat, nodes.Call),
    *(nodes.Assign, nodes.With),
)
_FILTERS = (
    *("abs", "capitalize", "d", "default", "dictsort", "first", "float", "indent", "int", "items", "join", "last"),
    *("length", "list", "lower", "map", "max", "min", "reject", "rejectattr", "replace", "reverse", "round", "select"),
    *("selectattr", "sort", "string", "sum", "title", "trim", "unique", "upper"),
)
_TESTS = (
    *("boolean", "defined", "divisibleby", "even", "false", "float", "integer", "iterable", "mapping", "none"),
    *("number", "odd", "sequence", "string", "true", "undefined"),
)
_OF_TEXTS = (
    *("capitalize", "count", "endswith", "find", "isalnum", "isalpha", "isdigit", "join", "ljust", "lower", "lstrip"),
    *("partition", "removeprefix", "removesuffix", "replace", "rjust", "rpartition", "rsplit", "rstrip", "split"),
    *("splitlines", "startswith", "strip", "title", "upper", "zfill"),
)
_OF_LOOPS = (
    *("changed", "cycle", "depth", "first", "index", "index0", "last", "length", "nextitem", "previtem", "revindex"),
    "revindex0",
)
_METHODS: Mapping[type, tuple[str, ...]] = {
    str: _OF_TEXTS,
    dict: ("get", "items", "keys", "values"),
    list: ("count", "index"),
    tuple: ("count", "index"),
    LoopContext: _OF_LOOPS,
}
# Filters that the compiler alone sets; no template can write a name with a space in it.
_ITEMS, _WEIGHED = " items", " weighed"
_METER = " meter"


class UnsuitableTemplate(Exception):  # noqa: N818 - reads as what it says
    """A template that is not to be rendered, or cannot be; with its line, when it is known."""

    def __init__(self, why: str, line: int | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.line = line


def parse_template(text: str) -> nodes.Template:
    """Return a template's syntax tree; UnsuitableTemplate for what is no template, or uses more than templates may."""
    try:
        tree = _environment().parse(text)
        _check(tree)
    except jinja2.TemplateSyntaxError as error:
        raise UnsuitableTemplate(error.message or "is not a template", error.lineno) from error
    except (RecursionError, MemoryError) as error:
        raise UnsuitableTemplate(_why(error)) from error
    except (ValueError, OverflowError) as error:
        raise UnsuitableTemplate("a number in it has too many digits") from error
    return tree


def names_wanted(tree: nodes.Template) -> set[str]:
    """Return the names that a template expects to be given; UnsuitableTemplate for what compiles to no program."""
    names = TrackingCodeGenerator(_environment())
    # It folds constants whatever the environment says (3.1.6), which fails outside of a rendering: `{{ 7[0] ~ 2 }}`.
    names.optimizer = None
    try:
        names.visit(tree)
    except jinja2.TemplateSyntaxError as error:
        raise UnsuitableTemplate(error.message or "is not a template", error.lineno) from error
    except RecursionError as error:
        raise UnsuitableTemplate(_why(error)) from error
    return names.undeclared_identifiers


def lines_of(tree: nodes.Template, names: Collection[str]) -> dict[str, int]:
    """Return the line on which a template first mentions each of these names."""
    lines: dict[str, int] = {}
    for node in tree.find_all(nodes.Name):
        if node.name in names:
            lines[node.name] = min(node.lineno, lines.get(node.name, node.lineno))
    return lines


def render_template(text: str, values: Mapping[str, object]) -> str:
    """Return the text with its values put in; UnsuitableTemplate with the line where it fails or becomes too much."""
    try:
        return "".join(_limit_output(_compile_template(text).generate({**values, _METER: _Meter()})))
    except UnsuitableTemplate:
        raise
    except jinja2.TemplateSyntaxError as error:  # found only when it is compiled: a name assigned twice, such as
        raise UnsuitableTemplate(error.message or "is not a template", error.lineno) from error
    except Exception as error:  # whatever a template does wrong is the template's mistake
        raise UnsuitableTemplate(_why(error), _line(error)) from error


def _limit_output(pieces: Iterable[str]) -> Iterator[str]:
    left = LONGEST
    for piece in pieces:
        left -= len(piece)
        if left < 0:
            raise SecurityError(f"it becomes longer than {LONGEST >> 20} MiB")
        yield piece


def quote_json(value: object) -> str:
    """Return a value as a JSON string, which YAML reads as the same text whatever is in it."""
    return json.dumps(str(value))


@dataclass(slots=True)
class _Meter:
    """What is left of a rendering's budget."""

    left: int = BUDGET

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise SecurityError("it takes too long: a loop or a text grows too large")


class _Environment(ImmutableSandboxedEnvironment):
    """The sandbox with listed methods only, whose operators and calls are paid for."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:  # noqa: ARG002 - of Jinja2
        if is_dataclass(obj) and not isinstance(obj, type):
            return attr in {each.name for each in fields(obj)}
        return any(isinstance(obj, kind) and attr in names for kind, names in _METHODS.items())

    def wrap_str_format(self, value: Any) -> None:
        """Leave `str.format` to `is_safe_attribute`, which does not list it: a width in it can be any number."""

    def call(self, context: Any, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        _meter(context).spend(_product(getattr(obj, "__self__", None), *args, *kwargs.values()))
        return super().call(context, obj, *args, **kwargs)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if isinstance(left, int | float) and isinstance(right, int | float):
            _check_numbers(operator, left, right)
        elif operator == "%":
            raise SecurityError("`%` is for numbers; put a text together with `~`")
        else:
            _meter(context).spend(_size(left) + _size(right) if operator == "+" else _product(left, right))
        return super().call_binop(context, operator, left, right)


class _Metered(NodeTransformer):
    """Puts what a template does without calls and operators through filters that count."""

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802 - named by Jinja2
        weight = sum(1 for _ in node.find_all(nodes.Node)) + 1
        self.generic_visit(node)
        node.iter = _filter(node.iter, _ITEMS, nodes.Const(weight))
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _filter(nodes.List(node.nodes, lineno=node.lineno), "join")

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        node.expr = _weigh_node(node.expr)
        for each in node.ops:
            each.expr = _weigh_node(each.expr)
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        if isinstance(node.arg, nodes.Slice):
            node.node = _weigh_node(node.node)
        return node


def _filter(node: nodes.Node, name: str, *arguments: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(cast("nodes.Expr", node), name, list(arguments), [], None, None, lineno=node.lineno)


def _weigh_node(node: nodes.Expr) -> nodes.Expr:
    return node if isinstance(node, nodes.Const) else _filter(node, _WEIGHED)


def _check(tree: nodes.Template) -> None:
    """Refuse what templates may not use, whether or not a rendering comes by it."""
    for number, node in enumerate(tree.find_all(nodes.Node)):
        if number > _MOST_NODES:
            raise UnsuitableTemplate("it has too many parts for one template", node.lineno)
        if (why := _refusal(node)) is not None:
            raise UnsuitableTemplate(why, node.lineno)


def _refusal(node: nodes.Node) -> str | None:
    if not isinstance(node, _NODES):
        return f"`{type(node).__name__.lower()}` is not possible in templates"
    if isinstance(node, nodes.For) and node.recursive:
        return "a recursive loop is not possible in templates"
    if isinstance(node, nodes.Filter) and node.name not in _environment().filters:
        return f"there is no filter `{node.name}`"
    if isinstance(node, nodes.Test) and node.name not in _environment().tests:
        return f"there is no test `{node.name}`"
    return _constant_refusal(node)


def _constant_refusal(node: nodes.Node) -> str | None:
    """Refuse constants that Jinja2 cannot turn into Python without a word on stderr, or at all."""
    if isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Slice) and _is_lone_value(node.node):
        return "a number, true, false or none has no parts"
    # Compiling a number takes writing it, which Python refuses of 4,300 digits.
    if isinstance(node, nodes.Const) and isinstance(node.value, int) and node.value.bit_length() > _BITS:
        return "a number in it has too many digits"
    return None


def _is_lone_value(node: nodes.Node) -> bool:
    """Return whether Python warns on stderr when a part of this constant is compiled: Jinja2 slices in Python."""
    return isinstance(node, nodes.Const) and not isinstance(node.value, str)


@lru_cache(maxsize=256)  # every guest has the same few templates, and compiling one takes longer than asking a guest
def _compile_template(text: str) -> jinja2.Template:
    tree = _Metered().visit(parse_template(text))
    return _environment().from_string(tree.set_environment(_environment()))


@cache
def _environment() -> _Environment:
    # Nothing rendered here is HTML; each template quotes for its own language.
    environment = _Environment(
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
        optimized=False,  # folding constants takes minutes for a name with 300 dots (3.1.6)
    )
    environment.filters = {name: _meter_filter(FILTERS[name]) for name in _FILTERS}
    environment.filters |= {"quoted": _meter_filter(quote_json), _ITEMS: _items, _WEIGHED: _weigh}
    environment.tests = {name: TESTS[name] for name in _TESTS}
    environment.globals = {"range": environment.globals["range"]}
    return environment


def _meter_filter(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter that is paid for, and whose result is there at once rather than piece by piece."""
    kind = getattr(function, "jinja_pass_arg", None)

    @jinja2.pass_context
    def metered(context: Any, *args: Any, **kwargs: Any) -> Any:
        _meter(context).spend(_product(*args, *kwargs.values()))
        first = {"context": (context,), "eval_context": (context.eval_ctx,), "environment": (context.environment,)}
        result = function(*(first[kind.name] if kind is not None else ()), *args, **kwargs)
        return list(result) if isinstance(result, Iterator) else result

    return metered


@jinja2.pass_context
def _items(context: Any, value: Any, weight: int) -> list[Any]:
    """Return what a loop goes over, its turns paid for, each by how much the loop has in it."""
    items = list(value)
    _meter(context).spend(len(items) * weight)
    return items


@jinja2.pass_context
def _weigh(context: Any, value: Any) -> Any:
    _meter(context).spend(_size(value))
    return value


def _meter(context: Any) -> _Meter:
    meter: _Meter = context[_METER]
    return meter


def _product(*values: Any) -> int:
    """Return more than what a function of these values can take in time and memory."""
    steps = 1
    for value in values:
        steps = min(steps * (1 + _size(value)), BUDGET + 1)
    return steps


def _size(value: Any, depth: int = 8) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, int):
        return abs(value)
    if isinstance(value, range):
        return len(value)
    if isinstance(value, list | tuple | dict) and depth:
        inner = value.values() if isinstance(value, dict) else value
        return len(value) + sum(_size(each, depth - 1) for each in inner)
    return BUDGET if isinstance(value, list | tuple | dict) else 1


def _check_numbers(operator: str, left: float, right: float) -> None:
    bits = [each.bit_length() if isinstance(each, int) else 64 for each in (left, right)]
    grown = bits[0] * min(abs(right), _BITS + 1) if operator == "**" else sum(bits)
    if grown > _BITS:
        raise SecurityError("a number becomes too large")


def _why(error: BaseException) -> str:
    if isinstance(error, RecursionError | MemoryError):
        return "it is nested too deeply"
    if isinstance(error, SyntaxError):  # of the Python that Jinja2 makes of it, such as 21 loops in each other
        return error.msg
    first = (str(error).strip().splitlines() or [""])[0]
    return first or type(error).__name__


def _line(error: BaseException) -> int | None:
    """Return the template's line that an error came from; Jinja2 puts it into the traceback."""
    found, here = None, error.__traceback__
    while here is not None:
        if here.tb_frame.f_code.co_filename == "<template>":
            found = here.tb_lineno
        here = here.tb_next
    return found
