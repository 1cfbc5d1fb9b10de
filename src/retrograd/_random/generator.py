"""Keep torch's CPU generator: mt19937, its seeding and its state bytes."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from .._thresholds import NATIVE
from .filling import Array

DEFAULT_SEED = 67280421310721

_WORDS_PER_STATE = 624
_INT64_MIN = -(1 << 63)

# torch's get_rng_state layout: a legacy struct whose dead fields are zero, then the float cache.
_STATE = np.dtype(
    [
        ("seed", "<u8"),
        ("left", "<i4"),
        ("seeded", "<i4"),
        ("next", "<u8"),
        ("words", "<u8", _WORDS_PER_STATE),
        ("normal_x", "<f8"),
        ("normal_y", "<f8"),
        ("normal_rho", "<f8"),
        ("normal_is_valid", "<i4"),
        ("legacy_padding", "<i4"),
        ("next_float_normal", "<f4"),
        ("next_float_normal_is_valid", "?"),
    ],
    align=True,
)


class Mt19937:
    """Produce the 32-bit words of one mt19937 stream."""

    def __init__(self, seed: int) -> None:
        """Start at `seed`."""
        self._bits = np.random.MT19937(0)
        self._in_pairs = np.random.Generator(self._bits)
        self.restart(seed)

    def restart(self, seed: int) -> None:
        """Seed the state from the low 32 bits of `seed`."""
        np.random.RandomState(self._bits).seed(seed & 0xFFFFFFFF)
        self._forget_ahead()
        # torch tells a seeded state from an exhausted one: its cursor is at 0 instead of at the end.
        self._untouched = True

    def _forget_ahead(self) -> None:
        """Draw nothing ahead."""
        # What is left of the current state, drawn ahead for small requests; the engine itself is at its end then.
        self._ahead: list[int] = []
        self._next = 0
        # The same as an array, and what small requests make of all of it when first asked.
        self._ahead_words: Any = None
        self._ahead_floats: Any = None
        self._ahead_doubles: Any = None

    def many(self, count: int, dtype: Any) -> Array | None:
        """Return the next words as uint32, or the fractions of their low 24 bits as float32, by a kernel; None if there is none."""
        if count < NATIVE:
            return None
        from .._native import twister  # only when asked for: kernels take time to import

        if not twister.is_available():
            return None
        state = twister.state_of(self._bits)
        state[_WORDS_PER_STATE] -= len(self._ahead) - self._next
        self._forget_ahead()
        self._untouched = False
        out = np.empty(count, dtype)
        twister.draw(state, out)
        return out

    def words(self, count: int) -> Array:
        """Return the next `count` words, each widened to uint64."""
        if count:
            self._untouched = False
        left = len(self._ahead) - self._next
        if not left:
            words: Array = self._bits.random_raw(count)
            return words
        taken = np.array(self._ahead[self._next : self._next + count], np.uint64)
        self._next += taken.size
        return taken if taken.size == count else np.concatenate((taken, self._bits.random_raw(count - taken.size)))

    def pairs(self, count: int) -> Array:
        """Return the next `count` pairs of words, the earlier word in the high half."""
        if self._next < len(self._ahead):
            words = self.words(2 * count)
            return (words[0::2] << np.uint64(32)) | words[1::2]
        if count:
            self._untouched = False
        return self._in_pairs.integers(0, 1 << 64, count, dtype=np.uint64)  # which takes words in this order

    def few(self, count: int) -> list[int]:
        """Return the next `count` words, at most 64, as Python numbers: quicker than an array of so few."""
        start = self._next
        stop = start + count
        if stop > len(self._ahead):
            rest = self._ahead[start:]
            cursor = int(self._bits.state["state"]["pos"])
            raw = self._bits.random_raw(_WORDS_PER_STATE - cursor or _WORDS_PER_STATE)
            if raw.size < count - len(rest):  # a state's last words and the next state
                rest += raw.tolist()
                raw = self._bits.random_raw(_WORDS_PER_STATE)
            self._untouched = False
            self._ahead, self._next = raw.tolist(), count - len(rest)
            self._ahead_words, self._ahead_floats, self._ahead_doubles = raw, None, None
            return rest + self._ahead[: self._next]
        self._next = stop
        return self._ahead[start:stop]

    def few_floats(self, count: int) -> Array:
        """Return a few float32 numbers in [0, 1), at most 64, one of each word."""
        start = self._next
        stop = start + count
        if stop > len(self._ahead) or not count:
            return np.array([(word & 0xFFFFFF) * 2.0**-24 for word in self.few(count)], np.float32)
        floats = self._ahead_floats
        if floats is None:
            floats = self._ahead_floats = (self._ahead_words & 0xFFFFFF).astype(np.float32) * np.float32(2.0**-24)
        self._next = stop
        return floats[start:stop].copy()  # type: ignore[no-any-return]

    def few_doubles(self, count: int) -> list[float]:
        """Return a few numbers in [0, 1), at most 32, of the low 53 bits of two words each."""
        start = self._next
        stop = start + 2 * count
        if stop > len(self._ahead) or not count:
            words = self.few(2 * count)
            # without integers of more than one machine word
            return [
                ((words[k] & 0x1FFFFF) * 4294967296.0 + words[k + 1]) * 1.1102230246251565e-16
                for k in range(0, 2 * count, 2)
            ]
        doubles = self._ahead_doubles
        if doubles is None:  # of every word and the next: a request may begin anywhere
            words = self._ahead_words
            doubles = (words[:-1] & 0x1FFFFF) * 4294967296.0 + words[1:]
            doubles *= 1.1102230246251565e-16
            self._ahead_doubles = doubles
        self._next = stop
        return doubles[start : stop - 1 : 2].tolist()  # type: ignore[no-any-return]

    def save(self, record: Any) -> None:
        """Write the state and the cursor into a record of torch's layout."""
        state: Any = self._bits.state["state"]
        cursor = int(state["pos"]) - (len(self._ahead) - self._next)
        record["words"] = state["key"]
        record["next"] = 0 if self._untouched else cursor
        record["left"] = 1 if self._untouched else _WORDS_PER_STATE + 1 - cursor
        record["seeded"] = 1

    def load(self, record: Any) -> None:
        """Read the state and the cursor from a record of torch's layout."""
        cursor, left = int(record["next"]), int(record["left"])
        untouched = cursor == 0 and left == 1
        consistent = 0 < cursor <= _WORDS_PER_STATE and cursor + left == _WORDS_PER_STATE + 1
        if not (record["seeded"] and (untouched or consistent)):
            raise RuntimeError("Invalid mt19937 state")
        key = record["words"].astype(np.uint32)
        position = _WORDS_PER_STATE if untouched else cursor
        self._forget_ahead()
        self._bits.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": position}}
        self._untouched = untouched


class Generator:
    """Hold one random stream with torch's seeding, state bytes and cached second normal."""

    def __init__(self, seed: int = DEFAULT_SEED) -> None:
        """Start the stream at `seed`."""
        # Made on first use: NumPy imports its random package on first touch, which is slow.
        self._made_engine: Mt19937 | None = None
        self.next_normal: float | None = None
        self._next_float_normal: float | None = None
        self.manual_seed(seed)

    def manual_seed(self, seed: int) -> Generator:
        """Restart the stream at `seed`, a value of either 64-bit integer type."""
        if isinstance(seed, np.integer):
            raise TypeError("an integer is required")
        if isinstance(seed, bool) or not isinstance(seed, int):
            kind = type(seed)
            prefix = "numpy." if kind.__module__ == "numpy" else ""
            raise RuntimeError(f"manual_seed expected a long, but got {prefix}{kind.__name__}")
        if not _INT64_MIN <= seed < 1 << 64:
            raise ValueError("Overflow when unpacking long long")
        self._seed = int(seed) % (1 << 64)
        if self._made_engine is not None:
            self._made_engine.restart(self._seed)
        self.next_normal = None
        self._next_float_normal = None
        return self

    def seed(self) -> int:
        """Restart the stream at a nondeterministic seed and return it."""
        self.manual_seed(int.from_bytes(os.urandom(8), "little"))
        return self._seed

    def initial_seed(self) -> int:
        """Return the seed the stream was last started at."""
        return self._seed

    def get_state(self) -> Array:
        """Return the state as the bytes of torch.get_rng_state()."""
        record = np.zeros((), _STATE)
        record["seed"] = self._seed
        self._engine.save(record)
        if self.next_normal is not None:
            record["normal_y"] = self.next_normal
            record["normal_is_valid"] = 1
        if self._next_float_normal is not None:
            record["next_float_normal"] = self._next_float_normal
            record["next_float_normal_is_valid"] = True
        return np.frombuffer(record.tobytes(), np.uint8).copy()

    def set_state(self, state: Array) -> Generator:
        """Continue from bytes made by get_state or by torch.get_rng_state()."""
        if state.dtype != np.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if state.size != _STATE.itemsize:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {_STATE.itemsize} "
                f"but found the input RNG state size to be {state.size}"
            )
        record = np.frombuffer(state.tobytes(), _STATE)[0]
        self._engine.load(record)
        self._seed = int(record["seed"])
        self.next_normal = float(record["normal_y"]) if record["normal_is_valid"] else None
        float_is_valid = bool(record["next_float_normal_is_valid"])
        self._next_float_normal = float(record["next_float_normal"]) if float_is_valid else None
        return self

    def clone_state(self) -> Generator:
        """Return an independent generator at the same point of the same stream."""
        return Generator().set_state(self.get_state())

    def get_offset(self) -> int:
        """Refuse, as torch's CPU generator has no offset."""
        raise RuntimeError("CPU Generator does not use offset")

    def set_offset(self, offset: int) -> None:
        """Refuse, as torch's CPU generator has no offset."""
        raise RuntimeError("CPU Generator does not use offset")

    @property
    def _engine(self) -> Mt19937:
        if self._made_engine is None:
            self._made_engine = Mt19937(self._seed)
        return self._made_engine

    def random32(self, count: int) -> Array:
        """Return `count` uniform uint32 values."""
        many = self._engine.many(count, np.uint32)
        return self._engine.words(count).astype(np.uint32) if many is None else many

    def random64(self, count: int) -> Array:
        """Return `count` uniform uint64 values, the earlier word in the high half."""
        return self._engine.pairs(count)

    def few32(self, count: int) -> list[int]:
        """Return a few uniform 32-bit numbers, at most 64."""
        return (self._made_engine or self._engine).few(count)

    def few_floats(self, count: int) -> Array:
        """Return a few of `unit_floats`, at most 64."""
        return (self._made_engine or self._engine).few_floats(count)

    def few_doubles(self, count: int) -> list[float]:
        """Return a few of `unit_doubles`, at most 32, as Python numbers."""
        return (self._made_engine or self._engine).few_doubles(count)

    def unit_floats(self, count: int) -> Array:
        """Return `count` float32 values uniform over the multiples of 2**-24 in [0, 1)."""
        many = self._engine.many(count, np.float32)
        if many is not None:
            return many
        masked = self.random32(count) & np.uint32(0xFFFFFF)
        return masked.view(np.int32).astype(np.float32) * np.float32(2.0**-24)

    def unit_doubles(self, count: int) -> Array:
        """Return `count` float64 values uniform over the multiples of 2**-53 in [0, 1)."""
        many = self._engine.many(2 * count, np.uint32)
        if many is not None:
            from .of_words import doubles_of

            return doubles_of(many)
        doubles = self._fractions(count).view(np.int64).astype(np.float64)
        doubles *= 2.0**-53
        return doubles

    def with_chance(self, count: int, chance: float) -> Array:
        """Tell which of `count` values of `unit_doubles` are less than a chance."""
        many = self._engine.many(2 * count, np.uint32)
        if many is not None:
            from .of_words import doubles_of

            return doubles_of(many) < chance
        found: Array = self._fractions(count) < np.uint64(math.ceil(chance * 2.0**53))
        return found

    def _fractions(self, count: int) -> Array:
        bits = self.random64(count)
        bits &= np.uint64((1 << 53) - 1)
        return bits
