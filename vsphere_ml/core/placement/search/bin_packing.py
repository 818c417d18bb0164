"""Covers a demand by bins of which each can give one of several bundles: exact, and pure arithmetic.

A bundle counts how many of each kind of thing it holds. Bins are gone through one by one, and each bundle is tried,
those first that have most of what is scarcest. What is left to cover and the bins left make a state; one from which
there was no way is not entered again. A state is left at once where the bins to come cannot give enough of a kind, of
two kinds together, or of all by weight. Any weights prove it when the bins cannot reach what is asked for; of few kinds
all small ones are tried.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from itertools import combinations, product
from typing import TYPE_CHECKING

from vsphere_ml.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Bundle = tuple[int, ...]
_PAIRED = 16  # kinds, of which pairs are looked at; there are too many of more
_WEIGHED = 6  # kinds, of which all small weights are looked at
_TIGHTEST = 8


class OutOfTriesError(Exception):
    """Whether there is a way stays unknown."""


def cover(
    demand: Bundle, bins: Sequence[Sequence[Bundle]], weights: Sequence[Bundle], tries: int
) -> list[Bundle] | None:
    """Return what each bin gives so that the sum is the demand, or None when there is no way.

    Whatever a bin can give, it can also give less of. OutOfTriesError after so many bundles were tried.
    """
    order = sorted(range(len(bins)), key=lambda at: (len(bins[at]), at))
    found = _Cover(demand, [bins[at] for at in order], weights, tries).run()
    if found is None:
        return None
    given = dict(zip(order, found, strict=False))  # bins that are not needed give nothing
    return [given.get(at, (0,) * len(demand)) for at in range(len(bins))]


@dataclass(slots=True)
class _Cover:
    demand: Bundle
    bins: list[Sequence[Bundle]]
    weights: Sequence[Bundle]
    tries: int
    _measures: list[Bundle] = field(init=False)
    _most: list[list[int]] = field(init=False)  # of each measure, by all bins from one on
    _dead: set[tuple[int, Bundle]] = field(default_factory=set)

    def __post_init__(self) -> None:
        kinds = range(len(self.demand))
        pairs = combinations(kinds, 2) if len(kinds) <= _PAIRED else ()
        sets = [*((kind,) for kind in kinds), *pairs, tuple(kinds)]
        self._measures = [tuple(int(kind in some) for kind in kinds) for some in sets]
        self._measures += [*self.weights, *self._tightest()]
        self._most = [[0] * len(self._measures)]
        for bundles in reversed(self.bins):
            here = [_at_best(measure, bundles) for measure in self._measures]
            self._most.append([most + more for most, more in zip(self._most[-1], here, strict=True)])
        self._most.reverse()

    def _tightest(self) -> list[Bundle]:
        """Return the small weights by which all bins together have the least to spare."""
        if len(self.demand) > _WEIGHED:
            return []
        alike = Counter(tuple(bundles) for bundles in self.bins)

        def spare(weights: Bundle) -> int:
            given = sum(count * _at_best(weights, bundles) for bundles, count in alike.items())
            return given - _times(weights, self.demand)

        every = product(range(3), repeat=len(self.demand))
        return sorted(every, key=lambda weights: (spare(weights), weights))[:_TIGHTEST]

    def run(self) -> list[Bundle] | None:
        left = [self.demand]
        given: list[Bundle] = []
        if not any(self.demand):
            return given
        if not self._hopeful(0, self.demand):
            return None
        levels = [self._bundles(0, self.demand)]
        while levels:
            bundle = next(levels[-1], None)
            if bundle is None:
                levels.pop()
                self._dead.add((len(levels), left.pop()))
                if given:
                    given.pop()
                continue
            after = _minus(left[-1], bundle)
            if not any(after):
                return [*given, bundle]
            if self._hopeful(len(levels), after):
                given.append(bundle)
                left.append(after)
                levels.append(self._bundles(len(levels), after))
        return None

    def _hopeful(self, at: int, left: Bundle) -> bool:
        if (at, left) in self._dead:
            return False
        return all(_times(measure, left) <= most for measure, most in zip(self._measures, self._most[at], strict=True))

    def _bundles(self, at: int, left: Bundle) -> Iterator[Bundle]:
        """Yield what the bin can give of what is left, the most of the scarcest first."""
        if at == len(self.bins) or not self._hopeful(at, left):
            return
        spare = [self._most[at][kind] - left[kind] for kind in range(len(left))]
        scarcest = sorted(range(len(left)), key=lambda kind: spare[kind])
        useful = maximal_bundles(tuple(map(min, bundle, left)) for bundle in self.bins[at])
        for bundle in sorted(useful, key=lambda bundle: [-bundle[kind] for kind in scarcest]):
            self.tries -= 1
            if self.tries < 0:
                raise OutOfTriesError
            yield bundle


def maximal_bundles(bundles: Iterator[Bundle]) -> list[Bundle]:
    """Return the bundles that no other one holds all of, in a fixed order."""
    found = sorted(set(bundles), reverse=True)
    return [one for one in found if not any(other != one and all(map(int.__ge__, other, one)) for other in found)]


def _at_best(measure: Bundle, bundles: Sequence[Bundle]) -> int:
    return max((_times(measure, bundle) for bundle in bundles), default=0)


def _times(measure: Bundle, bundle: Bundle) -> int:
    return sum(map(int.__mul__, measure, bundle))


def _minus(one: Bundle, other: Bundle) -> Bundle:
    return tuple(map(int.__sub__, one, other))
