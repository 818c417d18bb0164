"""A configuration in a few words: its size and transport, and what else sets it apart from the others at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsphere_ml.core.order import count
from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vsphere_ml.bench.model.record import Configuration

_OPTIONS = {"in": "in {}", "mpi": "MPI {}", "image": "images of {}", "variables": "{}", "script": "{}"}


@dataclass(frozen=True, slots=True)
class Titles:
    """Titles of configurations that are read side by side, so that no two of them have the same."""

    among: tuple[Configuration, ...] = ()

    @classmethod
    def of(cls, configurations: Iterable[Configuration]) -> Titles:
        """Return titles for these configurations, however often each of them comes."""
        distinct: list[Configuration] = []
        for each in configurations:
            if each not in distinct:
                distinct.append(each)
        return cls(tuple(distinct))

    def __call__(self, asked: Configuration) -> str:
        """Return the configuration's title."""
        size = f"{count(asked.nodes, 'node')}, {count(asked.ranks, 'rank')}"
        gradients = [f"{asked.gradients} gradients"] if asked.gradients != "fp32" else []
        what = f"{asked.workload} {_subject(asked)}".rstrip()
        return ", ".join([what, size, asked.transport, *gradients, *self.telling(asked)])

    def telling(self, asked: Configuration) -> tuple[str, ...]:
        """Return what sets the configuration apart from others of the same workload and model, whatever their size."""
        others = [_words(each) for each in self.among if _kind(each) == _kind(asked)]
        return tuple(
            words for key, words in _words(asked).items() if any(_differs(key, words, each) for each in others)
        )


def _kind(asked: Configuration) -> tuple[str, str]:
    return asked.workload, _subject(asked)


def _subject(asked: Configuration) -> str:
    """Return what the workload is about: a training regime's name stands for its launcher and all that it fixes."""
    return asked.options.get("regime", asked.model)


def _differs(key: str, words: str, other: dict[str, str]) -> bool:
    """Return whether the other says something else; of a model that did not train nobody knows the parameters."""
    return other.get(key, words if key == "parameters" else "") != words


def _words(asked: Configuration) -> dict[str, str]:
    """Return all that a title may have besides size, transport and gradients, in its order."""
    answers = {
        "launcher": asked.launcher,
        "backend": asked.backend,
        "batch": "" if asked.batch is None else f"batch {asked.batch}",
        "precision": f"{asked.precision} arithmetic",
        "parameters": "" if asked.parameters is None else f"{asked.parameters:,} parameters",
        **{f"option {key}": _option(key, value) for key, value in asked.options.items()},
    }
    return {key: words for key, words in answers.items() if words}


def _option(key: str, value: str) -> str:
    return _OPTIONS.get(key, f"{key.replace('_', ' ')} {{}}").format(value)
