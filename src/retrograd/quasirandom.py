"""Sobol sequences: points that fill a cube more evenly than random ones, with torch's numbers."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ._dtypes import dtype as _dtype
from ._dtypes import get_default_dtype
from .tensor import Tensor
from .tensor._functions.creation import from_numpy
from .tensor._functions.generators import Generator
from .tensor._functions.random_tensors import randint


class SobolEngine:
    """Draws the points of a Sobol sequence in a cube of up to 21,201 dimensions, scrambled if asked."""

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.seed = seed
        self.scramble = scramble
        self.dimension = dimension
        self.sobolstate = from_numpy(_direction_numbers(dimension, self.MAXBIT))
        self.shift = from_numpy(np.zeros(dimension, np.int64))
        if scramble:
            self._scramble()
        self.quasi = self.shift.clone()
        self._first_point = (self.quasi / 2**self.MAXBIT).reshape(1, -1)
        self.num_generated = 0

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: _dtype | None = None) -> Tensor:
        """Return the next `n` points, one in each row."""
        dtype = get_default_dtype() if dtype is None else dtype
        numbers = self._next(n)
        result: Tensor = from_numpy(numbers).to(dtype) * 2.0**-self.MAXBIT
        if out is not None:
            out.resize_as_(result).copy_(result)
            return out
        return result

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: _dtype | None = None) -> Tensor:
        """Return the next `2**m` points; the number drawn so far and these must be a power of two."""
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require "
                f"n to be a power of 2. {self.num_generated} points have been "
                f"previously generated, then: n={self.num_generated}+2**{m}={total}. "
                "If you still want to do this, please use "
                "'SobolEngine.draw()' instead."
            )
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Go back to the first point."""
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leave out the next `n` points."""
        self._next(n)
        return self

    def _next(self, n: int) -> Any:
        """Return the next points as integers. A point differs from the last by the direction of one bit (a Gray code)."""
        state, quasi = self.sobolstate.numpy(), self.quasi.numpy()
        first = [quasi.copy()] if self.num_generated == 0 and n else []
        counts = np.arange(max(self.num_generated - 1, 0), self.num_generated + n - 1)
        directions = state[:, _lowest_zero(counts)].T
        points = np.bitwise_xor.accumulate(np.vstack([quasi[None], directions]), axis=0)[1:]
        if len(points):
            quasi[...] = points[-1]
        self.num_generated += n
        return np.vstack([*first, points]) if first else points

    def _scramble(self) -> None:
        generator = None
        if self.seed is not None:
            generator = Generator()
            generator.manual_seed(self.seed)
        weights = 2 ** np.arange(self.MAXBIT)
        bits = randint(2, (self.dimension, self.MAXBIT), generator=generator).numpy()
        self.shift = from_numpy(bits @ weights)
        matrices = np.tril(randint(2, (self.dimension, self.MAXBIT, self.MAXBIT), generator=generator).numpy())
        diagonal = np.arange(self.MAXBIT)
        matrices[:, diagonal, diagonal] = 1
        rows = matrices[..., ::-1] @ weights  # each row of bits as a number, the highest bit first
        state = self.sobolstate.numpy()
        scrambled = np.zeros_like(state)
        for place in range(self.MAXBIT):
            parity = np.bitwise_count(rows[:, self.MAXBIT - 1 - place, None] & state) & 1
            scrambled |= parity.astype(np.int64) << place
        state[...] = scrambled

    def __repr__(self) -> str:
        words = [f"dimension={self.dimension}"]
        if self.scramble:
            words.append("scramble=True")
        if self.seed is not None:
            words.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(words)})"


def _lowest_zero(counts: Any) -> Any:
    """Return the place of the lowest bit that is zero."""
    lowest = ~counts & (counts + 1)
    return np.round(np.log2(np.maximum(lowest, 1))).astype(np.int64)


@cache
def _tables() -> tuple[Any, Any]:
    """Return the polynomials and first directions of Joe and Kuo, which scipy ships."""
    from importlib.resources import files

    with np.load(files("scipy.stats") / "_sobol_direction_numbers.npz") as table:  # type: ignore[arg-type]
        return table["poly"], table["vinit"]


def _direction_numbers(dimension: int, bits: int) -> Any:
    """Return, for each dimension, the direction of each bit, by the recurrence of the dimension's polynomial."""
    polynomials, first = (table[:dimension] for table in _tables())
    directions = np.ones((dimension, bits), np.int64)
    degrees = np.floor(np.log2(np.maximum(polynomials, 1))).astype(int)
    for degree in np.unique(degrees[1:]):
        chosen = degrees == degree
        chosen[0] = False  # the first dimension counts in powers of two
        polynomial = polynomials[chosen]
        rows = np.zeros((int(chosen.sum()), bits), np.int64)
        rows[:, :degree] = first[chosen, :degree]
        for j in range(degree, bits):
            new = rows[:, j - degree].copy()
            for k in range(1, degree + 1):
                taken = (polynomial >> (degree - k)) & 1
                new ^= taken * (rows[:, j - k] << k)
            rows[:, j] = new
        directions[chosen] = rows
    return directions << np.arange(bits - 1, -1, -1)


__all__ = ["SobolEngine"]
