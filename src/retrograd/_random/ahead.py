"""Hand out random numbers one by one, to algorithms that do not know how many they need."""

from __future__ import annotations

import math
from collections.abc import Iterator

from .filling import BLOCK
from .generator import Generator

_AHEAD = 256
_TWO_PI = 2.0 * math.pi


class Uniforms:
    """Hand out uniform numbers drawn ahead from a copy of the stream; `used` says how many."""

    def __init__(self, gen: Generator) -> None:
        self.gen = gen
        self.copy = Generator().set_state(Generator.get_state(gen))
        self.used = 0
        self.numbers = self._more()

    def _more(self) -> Iterator[float]:
        while True:
            yield from self.copy.unit_doubles(_AHEAD).tolist()

    def __call__(self) -> float:
        self.used += 1
        return next(self.numbers)

    def take_from_stream(self) -> None:
        """Bring the stream itself to where the numbers handed out end."""
        while self.used > 0:
            self.gen.unit_doubles(min(self.used, BLOCK))
            self.used -= BLOCK


class FewUniforms:
    """Hand out uniform numbers of the stream itself: quicker than a copy if few are needed."""

    def __init__(self, gen: Generator) -> None:
        self.gen = gen

    def __call__(self) -> float:
        return self.gen.few_doubles(1)[0]

    def take_from_stream(self) -> None:
        """Do nothing: the stream is there."""


def uniforms(gen: Generator, count: int) -> Uniforms | FewUniforms:
    """Return what hands out uniform numbers for `count` results."""
    return FewUniforms(gen) if count < 512 else Uniforms(gen)  # a copy takes as long as 300 results


class Normals:
    """Make normal numbers of uniform ones, in pairs; the second of a pair waits in the generator."""

    def __init__(self, gen: Generator, uniform: Uniforms | FewUniforms) -> None:
        self.gen = gen
        self.uniform = uniform

    def __call__(self) -> float:
        waiting = self.gen.next_normal
        if waiting is not None:
            self.gen.next_normal = None
            return waiting
        angle = _TWO_PI * self.uniform()
        radius = math.sqrt(-2.0 * math.log1p(-self.uniform()))
        self.gen.next_normal = radius * math.sin(angle)
        return radius * math.cos(angle)
