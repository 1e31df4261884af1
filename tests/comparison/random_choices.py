"""What all random programs share: the same seed gives the same calls."""

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias, TypeVar

from tests.comparison.servers import Step

PROGRAM_CALLS = 60
Weighted: TypeAlias = tuple[int, tuple[Callable[[], Step], ...]]
Item = TypeVar("Item")


class Choices(ABC):
    """One program. `_weighted` are the kinds of calls it makes and how often, `_beginning` its first ones."""

    counts = False
    """Whether it needs ids that count from its begin."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._kinds = [(make, weight) for weight, makes in self._weighted() for make in makes]

    def steps(self, count: int = PROGRAM_CALLS) -> list[Step]:
        return [*self._beginning(), *(self._step() for _ in range(count))][:count]

    @abstractmethod
    def _weighted(self) -> Iterator[Weighted]: ...

    @abstractmethod
    def _beginning(self) -> Iterator[Step]: ...

    def _step(self) -> Step:
        makes, weights = zip(*self._kinds, strict=True)
        make: Callable[[], Step] = self._random.choices(makes, weights)[0]
        return make()

    def _one(self, values: Sequence[Item]) -> Item:
        return self._random.choice(values)

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability
