"""Classes that `lazy_dataclass` makes are what the standard library would make of them."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, field, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from vsphere_ml import lazy_dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

# As a module's own attribute, so that mypy takes both for what they are: functions of the same options.
_MAKERS: dict[str, Any] = {"lazy": vars(lazy_dataclass)["dataclass"], "standard": dataclasses.dataclass}


def _classes(make: Any) -> dict[str, Any]:
    """Return one class of each shape that vsml has, made by one of the two."""

    @make(frozen=True, slots=True, kw_only=True)
    class Named:
        """A value."""

        name: str
        size: int = 3
        parts: tuple[str, ...] = ()
        more: dict[str, int] = field(default_factory=dict, compare=False)
        hidden: str = field(default="x", repr=False)

    @make(frozen=True, slots=True)
    class Placed:
        name: str
        size: int = 3

    @make(frozen=True, slots=True)
    class One:
        value: float

    @make(frozen=True, slots=True)
    class Nothing:
        pass

    @make(slots=True)
    class Changing:
        name: str
        seen: list[str] = field(default_factory=list)
        count: int = field(init=False, default=0)
        doubled: str = field(init=False)

        def __post_init__(self) -> None:
            self.doubled = self.name * 2

    @make(slots=True)
    class Mixed:
        first: str
        last: str = field(kw_only=True)
        middle: str = ""

    @make(frozen=True, slots=True)
    class Derived(Placed):
        colour: str = "red"

        def __post_init__(self) -> None:
            object.__setattr__(self, "colour", self.colour.upper())

    @make(frozen=True, slots=True)
    class Spoken:
        """A value that says something else of itself."""

        name: str

        def __repr__(self) -> str:
            return "spoken"

    @make(frozen=True, slots=True, order=True)
    class Ordered:
        """A value with an order."""

        name: str

    @make(frozen=True, slots=True, eq=False)
    class Single:
        """A value that is like no other."""

        name: str

    @make(frozen=True, slots=True)
    class Hashed:
        """A value of which one part makes the hash."""

        name: str
        size: int = field(default=3, hash=False)
        colour: str = field(default="red", compare=False, hash=True)

    @make(frozen=True, slots=True)
    class Stated:
        """A value that says itself what of it is kept."""

        name: str

        def __getstate__(self) -> list[str]:
            return [self.name.upper()]

    made = (Named, Placed, One, Nothing, Changing, Mixed, Derived, Spoken, Ordered, Single, Hashed, Stated)
    return {each.__name__: each for each in made}


_CLASSES = {name: _classes(make) for name, make in _MAKERS.items()}
_CALLS: tuple[tuple[str, tuple[Any, ...], dict[str, Any]], ...] = (
    ("Named", (), {"name": "a"}),
    ("Named", (), {"name": "a", "size": 4, "parts": ("x",), "more": {"k": 1}, "hidden": "y"}),
    ("Named", ("a",), {}),
    ("Named", (), {}),
    ("Named", (), {"name": "a", "unknown": 1}),
    ("Placed", ("a",), {}),
    ("Placed", ("a", 5), {}),
    ("Placed", ("a", 5, 6), {}),
    ("Placed", (), {"size": 5}),
    ("One", (float("nan"),), {}),
    ("Nothing", (), {}),
    ("Changing", ("ab",), {}),
    ("Changing", ("ab", ["c"]), {}),
    ("Changing", (), {"name": "ab", "count": 2}),
    ("Mixed", ("a", "b"), {"last": "c"}),
    ("Mixed", ("a", "b", "c"), {}),
    ("Derived", ("a",), {}),
    ("Derived", ("a", 4, "blue"), {}),
    ("Spoken", ("a",), {}),
    ("Ordered", ("a",), {}),
    ("Single", ("a",), {}),
    ("Hashed", ("a", 4, "blue"), {}),
    ("Stated", ("a",), {}),
)


def _outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - which it is, is compared
        return type(error), str(error)


def _facts(value: Any) -> dict[str, Any]:
    """Return what can be seen of a value, or of the error that came instead of one."""
    if isinstance(value, tuple):
        return {"error": value}
    state = {each.name: getattr(value, each.name) for each in fields(value)}
    return {
        "repr": repr(value).rpartition("<locals>.")[2],
        "state": state,
        "match": type(value).__match_args__,
        "doc": type(value).__doc__ if type(value).__name__ == "Named" else None,
        "same": value == copy.copy(value),
        "other": value == object(),
        "hash": _outcome(lambda: hash(value) == hash(copy.deepcopy(value))),
        "set": _outcome(lambda: setattr(copy.copy(value), "name", "new")),
        "delete": _outcome(lambda: delattr(copy.copy(value), "name")),
        "replaced": _outcome(lambda: repr(replace(value, name="new")).rpartition("<locals>.")[2]),
        "dict": hasattr(value, "__dict__"),
        "all": repr(dataclasses.asdict(value)),
    }


@pytest.mark.parametrize("call", _CALLS, ids=lambda call: f"{call[0]}-{len(call[1])}-{'-'.join(call[2])}")
def test_a_class_behaves_as_the_standard_librarys(call: tuple[str, tuple[Any, ...], dict[str, Any]]) -> None:
    name, given, named = call
    ours, theirs = (_facts(_outcome(partial(made[name], *given, **named))) for made in _CLASSES.values())
    # Where a class has no field of that name, the standard library asks `object`, which has another word for it.
    for each in (ours, theirs):
        if name in {"One", "Nothing", "Derived"}:
            each.pop("set", None), each.pop("delete", None)
    assert ours == theirs


@pytest.mark.parametrize("at", ["lazy", "standard"])
def test_no_frozen_value_can_be_changed_or_given_an_attribute(at: str) -> None:
    value = _CLASSES[at]["Named"](name="a")
    with pytest.raises(FrozenInstanceError):
        value.name = "b"
    with pytest.raises(FrozenInstanceError):
        del value.name
    with pytest.raises((FrozenInstanceError, AttributeError, TypeError)):
        value.new = 1


@pytest.mark.parametrize("at", ["lazy", "standard"])
def test_what_makes_the_hash_is_what_the_fields_say(at: str) -> None:
    make = _CLASSES[at]["Hashed"]
    assert hash(make("a", 4)) == hash(make("a", 5))
    assert hash(make("a", 4, "blue")) != hash(make("a", 4))


@pytest.mark.parametrize("at", ["lazy", "standard"])
@pytest.mark.parametrize(("above", "frozen"), [("Placed", False), ("Changing", True)])
def test_nothing_is_frozen_by_half(at: str, above: str, *, frozen: bool) -> None:
    with pytest.raises(TypeError):
        _MAKERS[at](frozen=frozen, slots=True)(type("Below", (_CLASSES[at][above],), {}))


@lazy_dataclass.dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A value that can be pickled: its class stands in a module."""

    name: str
    inside: Kept | None = None


def test_a_frozen_value_survives_pickle() -> None:
    value = Kept(name="a", inside=Kept(name="b"))
    assert pickle.loads(pickle.dumps(value)) == value


def test_a_value_that_holds_itself_can_be_shown() -> None:
    value = _CLASSES["lazy"]["Changing"]("a")
    value.seen.append(value)
    assert repr(value).count("...") == 1


def test_nothing_is_compiled_before_a_value_is_made() -> None:
    kind = _classes(_MAKERS["lazy"])["Named"]
    before = kind.__init__
    kind(name="a")
    assert kind.__init__ is not before
    after = kind.__init__
    kind(name="b")
    assert kind.__init__ is after


def test_no_signature_is_made_for_a_class_without_a_docstring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspect, "signature", lambda _: pytest.fail("that takes as long as to compile a method"))
    assert _classes(_MAKERS["lazy"])["Placed"].__doc__ is None


def test_what_a_provision_imports_is_not_compiled() -> None:
    """All but a few unusual ones, which the standard library makes, and those of other packages."""
    script = (
        "import dataclasses; made = []; whole = dataclasses.dataclass\n"
        "def count(*given, **options):\n"
        "    made.append(options) if options.get('init', True) else None\n"
        "    return whole(*given, **options)\n"
        "dataclasses.dataclass = count\n"
        "import vsphere_ml.cli.cluster.provision, vsphere_ml.flows.cluster.provision, vsphere_ml.core.model.inventory\n"
        "print(len(made))"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert int(said) <= 12, f"{said} classes are compiled at their definition"
