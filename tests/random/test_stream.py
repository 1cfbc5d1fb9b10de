"""Check that every draw and the stream after it are bit for bit those of the oracle."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrograd import _random as rr
from retrograd._random import filling, selection
from tests.oracle import Raised, first_line, outcome

DTYPES = {
    name: np.dtype(getattr(ml_dtypes if name == "bfloat16" else np, name))
    for name in (
        *("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"),
        *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
    )
}
FLOATS = ("float16", "bfloat16", "float32", "float64")
NUMBERS = ("uint8", "int8", "int16", "int32", "int64", *FLOATS)
SIZES = (0, 1, 2, 15, 16, 17, 31, 32, 33, 1000)
SEEDS = (0, 1, 42, 2**31 + 7, 2**64 - 1)


class Operation(NamedTuple):
    """Pair a draw from torch's generator with the same draw from ours."""

    dtypes: tuple[str, ...]
    torch: Callable[[Any, Any, int, Any], Any]  # (torch, generator, size, torch dtype)
    ours: Callable[[rr.Generator, int, np.dtype[Any]], Any]


def evenly(size: int) -> np.ndarray[Any, Any]:
    return (np.arange(size) % 7 / 6.0).astype(np.float64)


def in_place(method: str, *arguments: Any) -> Callable[[Any, Any, int, Any], Any]:
    return lambda torch, gen, size, dtype: getattr(torch.empty(size, dtype=dtype), method)(*arguments, generator=gen)


def strided_normal(torch: Any, gen: Any, size: int, dtype: Any) -> Any:
    return torch.empty(size + 1, 2, dtype=dtype)[1:, 0].normal_(0.3, 0.7, generator=gen)


OPERATIONS = {
    "uniform": Operation(FLOATS, in_place("uniform_"), lambda g, n, d: rr.uniform(g, (n,), d)),
    "uniform complex": Operation(
        ("complex64", "complex128"),
        lambda torch, gen, size, dtype: torch.rand(size, dtype=dtype, generator=gen),
        lambda g, n, d: rr.uniform(g, (n,), d),
    ),
    "uniform between": Operation(
        FLOATS, in_place("uniform_", -0.1, 0.7), lambda g, n, d: rr.uniform(g, (n,), d, -0.1, 0.7)
    ),
    "uniform far": Operation(
        FLOATS, in_place("uniform_", 100.0, 100.3), lambda g, n, d: rr.uniform(g, (n,), d, 100.0, 100.3)
    ),
    "normal": Operation(
        (*FLOATS, "complex64", "complex128"),
        lambda torch, gen, size, dtype: torch.randn(size, dtype=dtype, generator=gen),
        lambda g, n, d: rr.normal(g, (n,), d),
    ),
    "normal moved": Operation(
        (*FLOATS, "complex64", "complex128"),
        in_place("normal_", 0.3, 0.7),
        lambda g, n, d: rr.normal(g, (n,), d, 0.3, 0.7),
    ),
    "normal strided": Operation(
        FLOATS, strided_normal, lambda g, n, d: rr.normal(g, (n,), d, 0.3, 0.7, contiguous=False)
    ),
    "exponential": Operation(FLOATS, in_place("exponential_", 1.7), lambda g, n, d: rr.exponential(g, (n,), d, 1.7)),
    "cauchy": Operation(FLOATS, in_place("cauchy_", 0.3, 1.7), lambda g, n, d: rr.cauchy(g, (n,), d, 0.3, 1.7)),
    "log_normal": Operation(
        FLOATS, in_place("log_normal_", 0.3, 0.7), lambda g, n, d: rr.log_normal(g, (n,), d, 0.3, 0.7)
    ),
    "geometric": Operation(NUMBERS, in_place("geometric_", 0.3), lambda g, n, d: rr.geometric(g, (n,), d, 0.3)),
    "bernoulli": Operation(
        ("bool", *NUMBERS), in_place("bernoulli_", 0.37), lambda g, n, d: rr.bernoulli(g, 0.37, (n,), d)
    ),
    "bernoulli each": Operation(
        FLOATS,
        lambda torch, gen, size, dtype: torch.bernoulli(torch.from_numpy(evenly(size)).to(dtype), generator=gen),
        lambda g, n, d: rr.bernoulli(g, filling.cast(evenly(n), d), (n,), d),
    ),
    "random_": Operation(("bool", *NUMBERS), in_place("random_"), lambda g, n, d: rr.random_(g, (n,), d)),
    "random_ from": Operation(
        ("bool", *NUMBERS, "uint16", "uint32"),
        in_place("random_", 1, None),
        lambda g, n, d: rr.random_(g, (n,), d, 1),
    ),
    "random_ everything": Operation(
        ("int64", "bfloat16", "float32", "float64"),
        in_place("random_", -(2**63), None),
        lambda g, n, d: rr.random_(g, (n,), d, -(2**63)),
    ),
    "randint": Operation(
        (*NUMBERS, "uint16", "uint32", "uint64"),
        lambda torch, gen, size, dtype: torch.randint(3, 100, (size,), dtype=dtype, generator=gen),
        lambda g, n, d: rr.randint(g, (n,), 3, 100, d),
    ),
    "randint just 32-bit": Operation(
        ("int32", "int64", "uint32", "float64"),
        lambda torch, gen, size, dtype: torch.randint(5, 2**28 + 4, (size,), dtype=dtype, generator=gen),
        lambda g, n, d: rr.randint(g, (n,), 5, 2**28 + 4, d),
    ),
    "randint just 64-bit": Operation(
        ("int32", "int64", "uint32", "float64"),
        lambda torch, gen, size, dtype: torch.randint(5, 2**28 + 5, (size,), dtype=dtype, generator=gen),
        lambda g, n, d: rr.randint(g, (n,), 5, 2**28 + 5, d),
    ),
    "randint widest": Operation(
        ("int64",),
        lambda torch, gen, size, dtype: torch.randint(-(2**63), 2**63 - 1, (size,), dtype=dtype, generator=gen),
        lambda g, n, d: rr.randint(g, (n,), -(2**63), 2**63 - 1, d),
    ),
    "randperm": Operation(
        ("int32", "int64", "float32", "float64", "bfloat16"),
        lambda torch, gen, size, dtype: torch.randperm(size, dtype=dtype, generator=gen),
        lambda g, n, d: rr.randperm(g, n, d),
    ),
    "multinomial": Operation(
        FLOATS,
        lambda torch, gen, size, dtype: torch.multinomial(
            torch.from_numpy(1 + evenly(size + 2)).to(dtype), size + 1, generator=gen
        ),
        lambda g, n, d: rr.multinomial(g, filling.cast(1 + evenly(n + 2), d), n + 1),
    ),
    "multinomial replacing": Operation(
        FLOATS,
        lambda torch, gen, size, dtype: torch.multinomial(
            torch.from_numpy(evenly(30)).to(dtype), size + 1, True, generator=gen
        ),
        lambda g, n, d: rr.multinomial(g, filling.cast(evenly(30), d), n + 1, True),
    ),
}
PAIRS = [(name, dtype) for name, operation in OPERATIONS.items() for dtype in operation.dtypes]
# Left to NumPy beyond a few thousand elements, whose log, log1p, exp and tan may differ from libm's by 1 ulp.
BY_LIBM = ("normal", "normal moved", "normal strided", "exponential", "cauchy", "log_normal")


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def to_numpy(torch: Any, tensor: Any) -> np.ndarray[Any, Any]:
    if tensor.dtype == torch.bfloat16:
        bits: np.ndarray[Any, Any] = tensor.contiguous().view(torch.int16).numpy()
        return bits.view(ml_dtypes.bfloat16)
    array: np.ndarray[Any, Any] = tensor.contiguous().numpy()
    return array


def same_bits(ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any]) -> bool:
    return ours.dtype == theirs.dtype and ours.shape == theirs.shape and ours.tobytes() == theirs.tobytes()


def ulp_distance(ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any]) -> int:
    parts = [array.view(np.float64).view(np.int64) for array in (ours, theirs)]
    return int(np.abs(parts[0] - parts[1]).max(initial=0))


@pytest.mark.oracle
@pytest.mark.parametrize(("name", "dtype"), PAIRS)
def test_operations_match_bit_for_bit(torch: Any, name: str, dtype: str) -> None:
    operation = OPERATIONS[name]
    for seed, size in itertools.product(SEEDS, SIZES):
        theirs = torch.Generator().manual_seed(seed)
        ours = rr.Generator(seed)
        expected = to_numpy(torch, operation.torch(torch, theirs, size, getattr(torch, dtype)))
        drawn = operation.ours(ours, size, DTYPES[dtype])
        assert same_bits(drawn, expected), (seed, size)
        assert same_bits(ours.get_state(), theirs.get_state().numpy()), (seed, size)


@pytest.mark.oracle
@pytest.mark.parametrize(("name", "dtype"), PAIRS)
def test_large_draws(torch: Any, name: str, dtype: str) -> None:
    operation, size = OPERATIONS[name], 150_017
    theirs = torch.Generator().manual_seed(7)
    ours = rr.Generator(7)
    if name == "multinomial":
        size = 3000
    expected = to_numpy(torch, operation.torch(torch, theirs, size, getattr(torch, dtype)))
    drawn = operation.ours(ours, size, DTYPES[dtype])
    if name in BY_LIBM and dtype in ("float64", "complex128"):
        if name in ("normal", "exponential", "log_normal"):
            assert ulp_distance(drawn, expected) <= 8
        # Where the mean cancels the sample, the last bit of the sample is many of the sum.
        np.testing.assert_allclose(drawn, expected, rtol=4e-15, atol=4e-16)
        ours.next_normal = ours.next_normal and float(theirs.get_state()[5024:5032].numpy().view(np.float64)[0])
    else:
        assert same_bits(drawn, expected)
    assert same_bits(ours.get_state(), theirs.get_state().numpy())


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("name", ["uniform", "uniform between", "normal", "bernoulli"])
@pytest.mark.parametrize("before", [0, 1, 5, 311, 312, 623, 624, 700])
def test_few_before_and_after_many(torch: Any, before: int, name: str, dtype: str) -> None:
    theirs, ours = torch.Generator().manual_seed(3), rr.Generator(3)
    for size in (before, 8192, 3, 20_000, 1):
        if name == "normal" and size > 1000 and dtype == "float64":
            continue  # the last bit is NumPy's
        expected = to_numpy(torch, OPERATIONS[name].torch(torch, theirs, size, getattr(torch, dtype)))
        assert same_bits(OPERATIONS[name].ours(ours, size, DTYPES[dtype]), expected)
        assert same_bits(ours.get_state(), theirs.get_state().numpy())


@pytest.mark.oracle
def test_all_unit_angles_and_radii_of_float32_normals(torch: Any) -> None:
    for seed in range(20):
        theirs = torch.Generator().manual_seed(seed)
        expected = torch.randn(100_000, generator=theirs).numpy()
        assert same_bits(rr.normal(rr.Generator(seed), (100_000,), np.float32), expected)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "bfloat16"])
@pytest.mark.parametrize("method", ["uniform", "normal"])
@settings(max_examples=40)
@given(data=st.data())
def test_strided_fills_follow_memory(dtype: str, method: str, data: st.DataObject) -> None:
    torch = pytest.importorskip("torch")
    full = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    order = data.draw(st.permutations(range(len(full))))
    steps = tuple(slice(None, None, data.draw(st.integers(1, 2))) for _ in full)
    tensor = torch.zeros(full, dtype=getattr(torch, dtype)).permute(order)[steps]
    array = np.zeros(full, DTYPES[dtype]).transpose(order)[steps]
    theirs, ours = torch.Generator().manual_seed(5), rr.Generator(5)
    contiguous = tensor.is_contiguous()
    if method == "uniform":
        tensor.uniform_(generator=theirs)
        rr.fill_in_memory_order(array, lambda shape: rr.uniform(ours, shape, array.dtype))
    else:
        tensor.normal_(generator=theirs)
        rr.fill_in_memory_order(array, lambda shape: rr.normal(ours, shape, array.dtype, contiguous=contiguous))
    assert same_bits(np.ascontiguousarray(array), to_numpy(torch, tensor))
    assert same_bits(ours.get_state(), theirs.get_state().numpy())


def stepping(name: str) -> st.SearchStrategy[tuple[str, str, int]]:
    return st.tuples(st.just(name), st.sampled_from(OPERATIONS[name].dtypes), st.integers(0, 40))


steps = st.sampled_from(sorted(OPERATIONS)).flatmap(stepping)
exchanges = st.sampled_from(["to us", "to torch", "clone", "seed"]).map(lambda how: (how, "", 0))


@pytest.mark.oracle
@settings(max_examples=150, deadline=None)
@given(st.integers(-(2**63), 2**64 - 1), st.lists(steps | exchanges, max_size=12))
def test_mixed_calls_stay_in_step(seed: int, calls: list[tuple[str, str, int]]) -> None:
    torch = pytest.importorskip("torch")
    theirs, ours = torch.Generator().manual_seed(seed), rr.Generator(seed)
    for name, dtype, size in calls:
        if name == "to us":
            ours = rr.Generator(1).set_state(theirs.get_state().numpy())
        elif name == "to torch":
            theirs = torch.Generator().manual_seed(1)
            theirs.set_state(torch.from_numpy(ours.get_state()))
        elif name == "clone":
            ours, theirs = ours.clone_state(), theirs.clone_state()
        elif name == "seed":
            theirs.manual_seed(ours.seed())
        else:
            expected = OPERATIONS[name].torch(torch, theirs, size, getattr(torch, dtype))
            drawn = OPERATIONS[name].ours(ours, size, DTYPES[dtype])
            assert same_bits(drawn, to_numpy(torch, expected))
        assert ours.initial_seed() == theirs.initial_seed()
        assert same_bits(ours.get_state(), theirs.get_state().numpy())


def drawn_or_refused(draw: Callable[[], np.ndarray[Any, Any]]) -> Any:
    """Return the dtype and the bytes of what a draw gave, or how it failed."""
    found = outcome(draw, words=first_line, kinds=(RuntimeError, NotImplementedError))
    return found if isinstance(found, Raised) else (found.dtype, found.tobytes())


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["bool", *NUMBERS, "uint16", "uint32", "uint64", "complex64"])
@pytest.mark.parametrize("low", [0, 1, -5, 2000, 2**24 - 3, 2**40, -(2**63) + 1, -(2**63)])
@pytest.mark.parametrize("high", [None, 1, 2, 100, 60000, 2**24 + 20, 2**28, 2**31, 2**63 - 1])
def test_random_between_any_bounds(torch: Any, dtype: str, low: int, high: int | None) -> None:
    theirs, ours = torch.Generator().manual_seed(5), rr.Generator(5)
    expected = drawn_or_refused(
        lambda: to_numpy(torch, torch.empty(9, dtype=getattr(torch, dtype)).random_(low, high, generator=theirs))
    )
    assert drawn_or_refused(lambda: rr.random_(ours, (9,), DTYPES[dtype], low, high)) == expected
    assert same_bits(ours.get_state(), theirs.get_state().numpy())


@pytest.mark.oracle
@settings(deadline=None)
@given(data=st.data())
def test_equal_values_come_in_the_order_of_topk(data: st.DataObject) -> None:
    torch = pytest.importorskip("torch")
    size = data.draw(st.integers(2, 400))
    count = data.draw(st.integers(1, size))
    levels = data.draw(st.integers(1, 20))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    values = rng.integers(0, levels, size).astype(np.float64)
    expected = torch.topk(torch.from_numpy(values), count).indices.numpy()
    assert selection.largest(values, count).tolist() == expected.tolist()


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("layout", ["rows", "columns", "every other", "expanded"])
@pytest.mark.parametrize("replacement", [False, True])
def test_multinomial_of_many_rows(torch: Any, dtype: str, layout: str, replacement: bool) -> None:
    weights = (np.arange(5 * 70).reshape(5, 70) % 11).astype(DTYPES[dtype])
    layouts: dict[str, Callable[[Any], Any]] = {
        "rows": lambda array: array,
        "columns": lambda array: array.T,
        "every other": lambda array: array[:, ::2],
        "expanded": lambda array: (
            array[:1].expand(3, 70) if isinstance(array, torch.Tensor) else np.broadcast_to(array[:1], (3, 70))
        ),
    }
    tensor = layouts[layout](torch.from_numpy(weights.astype(np.float32)).to(getattr(torch, dtype)))
    for seed, count in itertools.product(range(10), (1, 2, 4)):
        theirs, ours = torch.Generator().manual_seed(seed), rr.Generator(seed)
        expected = torch.multinomial(tensor, count, replacement, generator=theirs).numpy()
        assert same_bits(rr.multinomial(ours, layouts[layout](weights), count, replacement), expected)
        assert same_bits(ours.get_state(), theirs.get_state().numpy())
