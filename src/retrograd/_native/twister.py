"""Random words of mt19937, many at once: a state of 624 words is made of the one before, and each word is tempered, in all lanes.

The state is that of NumPy's own generator, in its memory, so that either may go on where the other has stopped.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

import numpy as np

from . import nests
from .machine import is_available
from .nests import Nest, Value
from .trace import STORAGE

__all__ = ["draw", "is_available", "state_of"]

WORDS: Final = 624  # of a state
_APART: Final = 397  # a new word is made of two old ones and of the one so far on
_U32: Final = "u32"


def state_of(bits: Any) -> np.ndarray:
    """Return the memory of NumPy's generator: the words of its state, then the place of the next."""
    memory = (ctypes.c_uint32 * (WORDS + 1)).from_address(bits.ctypes.state_address)
    return np.frombuffer(memory, np.uint32)  # type: ignore[call-overload, no-any-return]


def _write(nest: Nest, storage: str) -> None:
    state, out = nest.pointer(), nest.pointer()
    place, head, blocks, count = nest.sizes(4)

    def word(index: Any) -> Value:
        return nest.load(state, index, _U32, _U32)

    def tempered(begin: Any, end: Any, first: Any) -> None:
        with nest.loop(begin, end, free=True) as i:
            w = word(first + i)
            w = nest.of("xor", w, nest.of("shr", w, 11))
            w = nest.of("xor", w, nest.of("and", nest.of("shl", w, 7), 0x9D2C5680))
            w = nest.of("xor", w, nest.of("and", nest.of("shl", w, 15), 0xEFC60000))
            w = nest.of("xor", w, nest.of("shr", w, 18))
            if storage == "f32":  # the low 24 bits as a fraction
                w = nest.of("cast", nest.of("cast", nest.of("and", w, 0xFFFFFF), type="i32"), type="f32") * 2.0**-24
            nest.store(out, i + done, w, storage)

    def renewed(index: Any, after: Any, far: Any) -> None:
        y = nest.of("or", nest.of("and", word(index), 0x80000000), nest.of("and", word(after), 0x7FFFFFFF))
        odd = nest.of("and", nest.of("sub", nest.constant(0, _U32), nest.of("and", y, 1)), 0x9908B0DF)
        nest.store(state, index, nest.of("xor", nest.of("xor", word(far), nest.of("shr", y, 1)), odd), _U32)

    done: Any = 0
    tempered(0, head, place)
    with nest.loop(0, blocks) as block:
        with nest.loop(0, WORDS - _APART) as i:
            renewed(i, i + 1, i + _APART)
        with nest.loop(WORDS - _APART, WORDS - 1) as i:
            renewed(i, i + 1, i - (WORDS - _APART))
        renewed(WORDS - 1, 0, _APART - 1)
        done = head + block * WORDS
        tempered(0, nest.of("imin", count - done, WORDS), 0)


def draw(state: np.ndarray, out: np.ndarray) -> None:
    """Fill dense memory with the next words, or as float32 with fractions of their low 24 bits, and move the state on."""
    place, count = int(state[WORDS]), out.size
    head = min(WORDS - place, count)
    blocks = -(-(count - head) // WORDS)
    function = nests.compiled(_write, STORAGE[out.dtype])
    nests.run(function, [state, out], [place, head, blocks, count], 1, 1)
    state[WORDS] = place + head if not blocks else count - head - (blocks - 1) * WORDS
