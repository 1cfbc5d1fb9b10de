"""The tests of torch's own test_autograd.py, one short program each, written anew from what each test is about.

A program takes the library, and raises if what it sees is not what torch shows: so it can be run in both. Its name is that of
torch's test without `test_`. `cannot` names the tests that no program can stand for, by reason.
"""

from __future__ import annotations

import gc
import math
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from retrograd._modes import current_mode, set_mode

SUITES: dict[str, Suite] = {}


class Suite:
    """The programs of one class of torch's test file, and the tests of it that have none."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.programs: dict[str, Callable[[Any], None]] = {}
        self.absent: dict[str, str] = {}
        SUITES[name] = self

    def __call__(self, program: Callable[[Any], None]) -> Callable[[Any], None]:
        name = program.__name__.removesuffix("_")
        assert name not in self.programs, f"two programs are called {name}"
        self.programs[name] = program
        return program

    def cannot(self, reason: str, *names: str) -> None:
        """Name tests of things that are not here."""
        self.absent.update(dict.fromkeys(names, reason))


def suite(name: str) -> Suite:
    """Return the programs of a class, which may stand in several files."""
    return SUITES[name] if name in SUITES else Suite(name)


@contextmanager
def refused(words: str, kind: type[BaseException] = RuntimeError) -> Iterator[None]:
    """Hold that a block raises an error in whose text a pattern is found."""
    try:
        yield
    except kind as error:
        assert re.search(words, str(error)), f"{words!r} is not in {str(error)!r}"
        return
    raise AssertionError(f"nothing was raised, not {kind.__name__}: {words}")


def near(ours: Any, expected: Any, tolerance: float = 1e-5) -> bool:
    """Compare tensors, or a tensor and numbers, up to rounding; NaN is like NaN."""
    return _near(_plain(ours), _plain(expected), tolerance)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.detach().tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value


def _near(ours: Any, expected: Any, tolerance: float) -> bool:
    if isinstance(ours, list) and isinstance(expected, list):
        return len(ours) == len(expected) and all(_near(a, b, tolerance) for a, b in zip(ours, expected, strict=True))
    if isinstance(ours, list):
        return all(_near(one, expected, tolerance) for one in ours)
    if ours is None or expected is None:
        return ours is expected
    if isinstance(ours, complex) or isinstance(expected, complex):
        return abs(ours - expected) <= tolerance * max(1.0, abs(expected))
    if math.isnan(ours) or math.isnan(expected):
        return math.isnan(ours) and math.isnan(expected)
    return ours == expected or abs(ours - expected) <= tolerance * max(1.0, abs(expected))


@contextmanager
def heard() -> Iterator[list[str]]:
    """Collect the texts of the warnings of a block."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        yield texts
    texts.extend(str(one.message) for one in seen)


@contextmanager
def modes_restored() -> Iterator[None]:
    """Let no program leave a mode behind for the next."""
    before = current_mode()
    try:
        yield
    finally:
        set_mode(before)


@contextmanager
def no_collector() -> Iterator[None]:
    """Keep the collector of cycles away from a block."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def function(torch: Any, forward: Any, backward: Any = None, **more: Any) -> Any:
    """Make a custom Function of two functions; further methods by name."""
    methods = {"forward": forward, **({} if backward is None else {"backward": backward}), **more}
    return type(
        "Own", (torch.autograd.Function,), {n: staticmethod(m) if callable(m) else m for n, m in methods.items()}
    )


def leaf(torch: Any, *shape: int, dtype: Any = None) -> Any:
    """Make a leaf of fixed numbers, no two alike."""
    count = math.prod(shape)
    return (torch.arange(count, dtype=dtype or torch.float64) * 0.7 - 0.9).reshape(shape).clone().requires_grad_()


def accumulator(tensor: Any) -> Any:
    """Return the node that adds to a leaf's gradient."""
    return tensor.view_as(tensor).grad_fn.next_functions[0][0]
