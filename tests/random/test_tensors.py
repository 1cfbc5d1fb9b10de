"""Random tensors against torch, bit for bit: every dtype and layout, sizes around torch's blocks of sixteen, and vmap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.oracle import Raised, first_line, outcome

torch = pytest.importorskip("torch")

import retrograd  # noqa: E402 - torch may be missing

pytestmark = pytest.mark.oracle

DTYPES = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "int64", "int32", "uint8", "bool")
SIZES = ((), (0,), (3,), (15,), (16,), (17,), (40,), (3, 7))
IN_PLACE: list[tuple[str, tuple[Any, ...]]] = [
    ("uniform_", (-1, 2)),
    ("uniform_", ()),
    ("normal_", (1, 2)),
    ("random_", ()),
    ("random_", (2,)),
    ("random_", (0, 2)),
    ("bernoulli_", (0.3,)),
    ("exponential_", (1.5,)),
    ("cauchy_", ()),
    ("log_normal_", (0, 0.25)),
    ("geometric_", (0.3,)),
]
NEW: dict[str, Callable[[Any, Any, Any], Any]] = {
    "rand": lambda lib, size, dtype: lib.rand(size, dtype=dtype),
    "randn": lambda lib, size, dtype: lib.randn(size, dtype=dtype),
    "randint": lambda lib, size, dtype: lib.randint(0, 2, size, dtype=dtype),
    "randint_like": lambda lib, size, dtype: lib.randint_like(lib.zeros(size, dtype=dtype), 2),
    "rand_like transposed": lambda lib, size, dtype: lib.rand_like(
        lib.zeros(size, dtype=dtype).mT if len(size) > 1 else lib.zeros(size, dtype=dtype)
    ),
    "randn_like transposed": lambda lib, size, dtype: lib.randn_like(
        lib.zeros(size, dtype=dtype).mT if len(size) > 1 else lib.zeros(size, dtype=dtype)
    ),
    "normal": lambda lib, size, dtype: lib.normal(0.5, 2.0, size, dtype=dtype),
    "bernoulli": lambda lib, size, dtype: lib.bernoulli(lib.full(size, 0.3).to(dtype)),
    "randperm": lambda lib, size, dtype: lib.randperm(size[0] if size else 5, dtype=dtype),
    "rand out": lambda lib, size, dtype: lib.rand(size, out=lib.empty(0, dtype=dtype)),
}


def values(tensor: Any) -> Any:
    tensor = tensor.float() if "bfloat16" in str(tensor.dtype) else tensor
    return np.asarray(tensor.tolist())


def drawn(library: Any, draw: Callable[[Any], Any]) -> Any:
    """Return what is drawn after a seed and what comes next in the stream, or the error."""
    library.manual_seed(5)

    def run() -> Any:
        found = draw(library)
        return values(found), tuple(found.stride()), values(library.rand(3))

    return outcome(run, words=first_line)


def check(draw: Callable[[Any], Any]) -> None:
    ours, theirs = drawn(retrograd, draw), drawn(torch, draw)
    if isinstance(ours, Raised) or isinstance(theirs, Raised):
        assert ours == theirs
        return
    for one, other in zip(ours, theirs, strict=True):
        assert np.array_equal(one, other), (one, other)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NEW)
def test_new_tensors(name: str, dtype: str) -> None:
    for size in SIZES:
        check(lambda lib, size=size: NEW[name](lib, size, getattr(lib, dtype)))  # type: ignore[misc]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("name", "arguments"), IN_PLACE)
def test_in_place(name: str, arguments: tuple[Any, ...], dtype: str) -> None:
    for size in SIZES:
        check(lambda lib, size=size: getattr(lib.zeros(size, dtype=getattr(lib, dtype)), name)(*arguments))  # type: ignore[misc]
    check(lambda lib: getattr(lib.zeros(3, 7, dtype=getattr(lib, dtype)).t(), name)(*arguments))
    check(lambda lib: getattr(lib.zeros(40, dtype=getattr(lib, dtype))[::2], name)(*arguments))


PARAMETERS: dict[str, Callable[[Any], Any]] = {
    "normal of tensors": lambda lib: lib.normal(lib.arange(5.0), lib.arange(1.0, 6)),
    "normal of means": lambda lib: lib.normal(lib.arange(20.0), 1.5),
    "normal of deviations": lambda lib: lib.normal(1.5, lib.arange(20.0)),
    "normal broadcast": lambda lib: lib.normal(lib.zeros(2, 1), lib.ones(3)),
    "bernoulli of a matrix": lambda lib: lib.bernoulli(lib.linspace(0, 1, 21).reshape(3, 7).t()),
    "bernoulli_ of a tensor": lambda lib: lib.zeros(3, 7).t().bernoulli_(lib.linspace(0, 1, 21).reshape(7, 3)),
    "poisson": lambda lib: lib.poisson(lib.tensor([0.0, 0.5, 3.0, 9.9, 10.0, 25.0, 1000.0])),
    "many poissons": lambda lib: lib.poisson(lib.full((300,), 12.5, dtype=lib.float64)),
    "multinomial": lambda lib: lib.multinomial(lib.arange(10.0), 4),
    "multinomial with replacement": lambda lib: lib.multinomial(lib.arange(10.0).reshape(2, 5), 4, True),
    "across states": lambda lib: lib.cat([lib.rand(3), lib.rand(615), lib.randn(2), lib.rand(10), lib.randn(20)]),
    "another generator": lambda lib: lib.rand(5, generator=lib.Generator().manual_seed(3)),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters(name: str) -> None:
    check(PARAMETERS[name])


def test_fork_rng() -> None:
    def draw(lib: Any) -> Any:
        with lib.random.fork_rng():
            lib.rand(7)
        return lib.rand(2)

    check(draw)


@pytest.mark.parametrize(
    "name", ["rand", "randn", "bernoulli", "normal", "poisson", "uniform_", "randperm", "multinomial"]
)
@pytest.mark.parametrize("randomness", ["same", "different", "error"])
def test_vmap(name: str, randomness: str) -> None:
    draws: dict[str, Callable[[Any], Any]] = {
        "rand": lambda x: retrograd.rand(4),
        "randn": lambda x: retrograd.randn(4),
        "bernoulli": lambda x: retrograd.bernoulli(x * 0 + 0.5),
        "normal": lambda x: retrograd.normal(x, 1.0) - x,
        "poisson": lambda x: retrograd.poisson(x * 0 + 3),
        "uniform_": lambda x: x.clone().uniform_(),
        "randperm": lambda x: retrograd.randperm(30),
        "multinomial": lambda x: retrograd.multinomial(x * 0 + 1, 3),
    }
    mapped = retrograd.vmap(draws[name], randomness=randomness)
    x = retrograd.arange(40.0).reshape(2, 20)
    if randomness == "error":
        with pytest.raises(RuntimeError, match="randomness error mode"):
            mapped(x)
        return
    if randomness == "same" and name in (
        "bernoulli",
        "normal",
        "poisson",
        "multinomial",
    ):  # each has parameters of its own
        with pytest.raises(RuntimeError, match="same randomness with a batched tensor input"):
            mapped(x)
        return
    first, second = mapped(x).detach()
    assert np.allclose(first.tolist(), second.tolist(), atol=1e-4) == (randomness == "same")
