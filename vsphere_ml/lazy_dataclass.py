"""`dataclass` as the standard library's, without its cost at import: nothing is compiled before a value is made.

A command imports some two hundred such classes and makes values of half of them. For each, Python (3.11 to 3.14)
compiles up to six methods from text, which took a sixth of a short command. Here fields, slots and `replace` are the
standard library's; its other methods are written once for all classes, and `__init__` is compiled at its first call.
"""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING, FrozenInstanceError, fields
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from dataclasses import Field, dataclass  # noqa: TID251 - what type checkers take ours for

__all__ = ["dataclass"]

_standard = dataclasses.dataclass  # noqa: TID251
_OWN_METHODS = {"__init__", "__repr__", "__eq__", "__hash__"}
_OWN_METHODS |= {"__setattr__", "__delattr__", "__getstate__", "__setstate__"}  # of a frozen one
_SUPPORTED = {"frozen", "slots", "kw_only"}


def _make(**options: bool) -> Callable[[type], type]:
    """Return a decorator that makes a class a dataclass, with the options of `dataclasses.dataclass`.

    A class that has one of the methods itself, no slots, an order or an unusual equality is left to the standard
    library, and so is one below such a class.
    """

    def define(kind: type) -> type:
        if _is_unusual(kind, options):
            return _standard(**options)(kind)
        return _define(kind, frozen=options.get("frozen", False), kw_only=options.get("kw_only", False))

    return define


if not TYPE_CHECKING:
    dataclass = _make


def _is_unusual(kind: type, options: dict[str, bool]) -> bool:
    if not options.get("slots") or not options.keys() <= _SUPPORTED or _OWN_METHODS & vars(kind).keys():
        return True
    above = (getattr(each, "__dataclass_params__", None) for each in kind.__mro__[1:])
    return any(params.frozen for params in above if params is not None)


def _define(kind: type, *, frozen: bool, kw_only: bool) -> type:
    documentation = kind.__doc__
    kind.__doc__ = documentation or " "  # else one would be made of a signature
    defined: Any = _standard(init=False, repr=False, eq=False, slots=True, kw_only=kw_only)(kind)
    defined.__doc__ = documentation
    _refuse_mixture(defined, frozen=frozen)
    compared = _values_of(each.name for each in fields(defined) if each.compare)
    hashed = _values_of(each.name for each in fields(defined) if (each.compare if each.hash is None else each.hash))
    defined.__init__ = _late_init(defined)
    defined.__repr__ = _show
    defined.__eq__ = _equality(compared)
    defined.__hash__ = (lambda self: hash(hashed(self))) if frozen else None
    if frozen:
        defined.__setattr__, defined.__delattr__ = _refuse_value, _refuse_deletion
        defined.__getstate__, defined.__setstate__ = _get_state, _set_state
    return defined  # type: ignore[no-any-return]


def _refuse_mixture(defined: Any, *, frozen: bool) -> None:
    """Raise TypeError, as the standard library does, for a class that is frozen below one that is not, or reversed."""
    above = [each for each in defined.__mro__[1:] if dataclasses.is_dataclass(each)]
    if any((each.__setattr__ is _refuse_value) is not frozen for each in above):
        first, second = ("frozen", "a non-frozen") if frozen else ("non-frozen", "a frozen")
        raise TypeError(f"cannot inherit {first} dataclass from {second} one")


def _values_of(names: Iterable[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that gives the values of these attributes."""
    wanted = tuple(names)
    if len(wanted) > 1:
        return attrgetter(*wanted)
    return lambda value: tuple(getattr(value, each) for each in wanted)


def _equality(compared: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, object], Any]:
    def equal(self: Any, other: object) -> Any:
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    return equal


@recursive_repr()
def _show(self: Any) -> str:
    shown = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{self.__class__.__qualname__}({shown})"


def _refuse_value(_self: Any, name: str, _value: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(_self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for each, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)


def _late_init(kind: Any) -> Callable[..., None]:
    """Return an `__init__` that puts the real one in its place, and calls it."""

    def compile_first(self: Any, *given: Any, **named: Any) -> None:
        kind.__init__ = _compile_init(kind)
        kind.__init__(self, *given, **named)

    return compile_first


def _compile_init(kind: Any) -> Callable[..., None]:
    names: dict[str, Any] = {"MISSING": MISSING}
    known = fields(kind)
    arguments = [_argument(each, names) for each in known if each.init and not each.kw_only]
    keywords = [_argument(each, names) for each in known if each.init and each.kw_only]
    lines = [f" {line}" for each in known for line in _assignments(each, kind, names)]
    if hasattr(kind, "__post_init__"):
        lines.append(" self.__post_init__()")
    head = ", ".join(["self", *arguments, *(["*", *keywords] if keywords else [])])
    exec("\n".join([f"def __init__({head}):", *(lines or [" pass"])]), names)  # noqa: S102 - as dataclasses does
    made: Callable[..., None] = names["__init__"]
    made.__qualname__ = f"{kind.__qualname__}.__init__"
    return made


def _argument(each: Field[Any], names: dict[str, Any]) -> str:
    if each.default_factory is not MISSING:
        return f"{each.name}=MISSING"
    if each.default is MISSING:
        return each.name
    names[f"default_{each.name}"] = each.default
    return f"{each.name}=default_{each.name}"


def _assignments(each: Field[Any], kind: Any, names: dict[str, Any]) -> Iterator[str]:
    """Yield what sets a field. A slot's own setter is quicker than `object.__setattr__`, and not refused."""
    if (value := _value(each, names)) is not None:
        names[f"set_{each.name}"] = getattr(kind, each.name).__set__
        yield f"set_{each.name}(self, {value})"


def _value(each: Field[Any], names: dict[str, Any]) -> str | None:
    """Return the expression of a field's value; None for one that only `__post_init__` sets."""
    if each.default_factory is not MISSING:
        names[f"make_{each.name}"] = each.default_factory
        made = f"make_{each.name}()"
        return f"{made} if {each.name} is MISSING else {each.name}" if each.init else made
    if each.init:
        return each.name
    if each.default is MISSING:
        return None
    names[f"default_{each.name}"] = each.default
    return f"default_{each.name}"
