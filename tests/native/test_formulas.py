"""Kernels made from formulas give what the formula gives on NumPy, for every layout that arrays can have."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrograd import _thresholds
from retrograd._core.numpy_namespace import numpy_namespace as xp
from retrograd._native import machine, program
from retrograd._native.program import formula

needs_llvm = pytest.mark.skipif(not machine.is_available(), reason="llvmlite is not installed")
bfloat16 = ml_dtypes.bfloat16


def numbers(*shape, dtype=np.float32, seed=0):
    values = np.random.default_rng(seed).standard_normal(shape)
    return values.astype(dtype) if np.dtype(dtype).kind in "fV" else (values * 10).astype(dtype)


@formula
def bent(xp, x):
    return x / (1 + xp.abs(x))


@formula
def distance(xp, x, y):
    return xp.sqrt((x - y) * (x - y) + 1)


@formula
def centred(xp, x, *, axis):
    """Two passes: the mean, then the sum of squares."""
    count = x.shape[axis]
    rest = x - xp.sum(x, axis=axis, keepdims=True) / count
    return rest / xp.sqrt(xp.sum(rest * rest, axis=axis, keepdims=True) / count)


@formula
def projected(xp, g, x, *, axis, others):
    """An element, a row and a column: what the backward of a norm gives."""
    dot = xp.sum(g * x, axis=axis, keepdims=True)
    return g - x * dot, dot, xp.sum(g * x, axis=others, keepdims=True)


@formula
def total(xp, x, *, axis):
    return xp.sum(x, axis=axis, keepdims=True)


@formula
def extremes(xp, x, *, axis):
    return xp.max(x, axis=axis, keepdims=True), xp.min(x, axis=axis, keepdims=True)


@formula(numbers=("scale",))
def scaled(xp, x, *, scale):
    return x * scale


def check(made, *arrays, tolerance=1e-5, native=True, **params):
    """Compare with the formula in float64, and see that a kernel ran."""
    found = made.large(xp, arrays, params)
    if native and machine.is_available():
        assert list(made.plans.values())[-1] is not None, made.refused
    wide = [a.astype(np.float64) if a.dtype.kind in "fV" else a for a in arrays]
    expected = made.formula(xp, *wide, **params)
    found = found if type(found) is tuple else (found,)
    expected = expected if type(expected) is tuple else (expected,)
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a.astype(np.float64), b, rtol=tolerance, atol=tolerance * (1 + np.abs(b).max()))
    return found


def layouts():
    yield "dense", lambda *s: numbers(*s)
    yield "transposed", lambda *s: numbers(*s[::-1]).T
    yield "strided", lambda *s: numbers(*[2 * n for n in s])[tuple(slice(None, None, 2) for _ in s)]
    yield "reversed", lambda *s: numbers(*s)[::-1]


@pytest.mark.parametrize("make", [pytest.param(m, id=n) for n, m in layouts()])
def test_elements_of_any_layout(make):
    check(bent, make(70, 51))
    check(distance, make(70, 51), make(70, 51))
    check(distance, make(70, 51), numbers(51))
    check(distance, numbers(70, 1), make(70, 51))
    check(distance, make(7, 5, 51), numbers(5, 1))
    check(distance, numbers(1, 51), numbers(70, 1))
    check(distance, make(70, 51), numbers())


@pytest.mark.parametrize("make", [pytest.param(m, id=n) for n, m in layouts()])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_rows_of_any_layout(make, axis):
    x = make(9, 31, 17)
    check(centred, x, axis=axis)
    check(total, x, axis=(axis,))
    check(extremes, x, axis=(axis,))
    for axes in ((0, 1), (0, 2), (1, 2), (0, 1, 2)):
        check(total, x, axis=axes)


@pytest.mark.parametrize("rows", [1, 2, 3, 1000, 5000])
def test_an_element_a_row_and_a_column_in_one_kernel(rows):
    if rows == 1:
        pytest.skip("of one row the columns are the elements")
    check(projected, numbers(rows, 33), numbers(rows, 33, seed=1), axis=1, others=(0,), tolerance=1e-4)


def test_long_rows_are_summed_in_parts():
    x = numbers(3, 1_000_003)
    check(total, x, axis=(1,))
    check(total, x, axis=(0, 1))
    ones = np.ones(20_000_000, np.float32)
    assert total.large(xp, [ones], {"axis": (0,)})[0] == 20_000_000  # one number after the other would stop at 2^24


@pytest.mark.parametrize("dtype", [np.float16, bfloat16])
def test_half_precision_is_rounded_once(dtype):
    x, y = numbers(300, 70, dtype=dtype), numbers(300, 70, dtype=dtype, seed=1)
    for made, arrays in ((bent, [x]), (distance, [x, y])):
        found = made.large(xp, arrays, {})
        assert found.dtype == dtype
        expected = made.formula(xp, *[a.astype(np.float32) for a in arrays]).astype(dtype)
        np.testing.assert_array_equal(found.view(np.uint16), expected.view(np.uint16))


@needs_llvm
@pytest.mark.parametrize("dtype", [np.float16, bfloat16])
def test_every_half_number_is_read_and_written(dtype):
    every = np.arange(65536, dtype=np.uint16).view(dtype)
    same = formula(lambda xp, x: x * 1.0)
    found = same.large(xp, [every], {})
    assert (np.isnan(found.astype(np.float32)) == np.isnan(every.astype(np.float32))).all()
    number = ~np.isnan(every.astype(np.float32))
    np.testing.assert_array_equal(found.view(np.uint16)[number], every.view(np.uint16)[number])


def test_special_values_go_through_reductions():
    x = numbers(40, 50)
    x[3, 7], x[5, 1], x[6, 2] = np.nan, np.inf, -np.inf
    high, low = extremes.large(xp, [x], {"axis": (1,)})
    np.testing.assert_array_equal(high, x.max(1, keepdims=True))
    np.testing.assert_array_equal(low, x.min(1, keepdims=True))
    np.testing.assert_array_equal(np.isnan(total.large(xp, [x], {"axis": (1,)})), np.isnan(x.sum(1, keepdims=True)))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.bool_])
def test_integers_are_compared_chosen_and_converted(dtype):
    x, y = numbers(200, 100, dtype=dtype), numbers(200, 100, dtype=dtype, seed=1)
    made = formula(
        lambda xp, x, y: (xp.where(xp.greater(x, y), x, y), xp.less_equal(x, y), xp.astype(x, dtype=np.float32))
    )
    found = made.large(xp, [x, y], {})
    for a, b in zip(found, made.formula(xp, x, y), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def test_a_number_of_the_call_needs_no_other_kernel():
    x = numbers(20_000)
    scaled.plans.clear()
    for scale in (1.5, -2.0, float("inf")):
        np.testing.assert_array_equal(scaled.large(xp, [x], {"scale": scale}), x * np.float32(scale))
    assert len(scaled.plans) == 1


def test_results_go_into_memory_that_is_there():
    x, y = numbers(200, 100), numbers(200, 100, seed=1)
    expected = distance.formula(xp, x, y)
    place = x  # that of an argument
    distance.into([place], x, y)
    np.testing.assert_allclose(place, expected, rtol=1e-6)
    other = np.empty((100, 200), np.float32).T  # of another layout
    distance.into([other], x * 0, y)
    np.testing.assert_allclose(other, distance.formula(xp, x * 0, y), rtol=1e-6)


def test_no_elements_and_no_axes():
    assert bent.large(xp, [numbers(0, 5)], {}).shape == (0, 5)
    assert bent.large(xp, [numbers()], {}).shape == ()
    assert total.large(xp, [numbers(4, 0)], {"axis": (1,)}).tolist() == [[0]] * 4


def test_the_same_bits_on_every_run():
    g, x = numbers(5000, 33), numbers(5000, 33, seed=1)
    first = projected.large(xp, [g, x], {"axis": 1, "others": (0,)})
    for _ in range(5):
        again = projected.large(xp, [g, x], {"axis": 1, "others": (0,)})
        for a, b in zip(first, again, strict=True):
            np.testing.assert_array_equal(a, b)


def test_threads_may_call_and_compile_at_once():
    made = formula(lambda xp, x, *, k: x * k + xp.sqrt(xp.abs(x)))
    x, found = numbers(50_000), {}

    def work(k):
        found[k] = made(xp, x, k=k)

    threads = [threading.Thread(target=work, args=(k % 4,)) for k in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, value in found.items():
        np.testing.assert_allclose(value, x * np.float32(k) + np.sqrt(np.abs(x)), rtol=1e-6)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_broadcasting_like_numpy(data):
    """Any shapes that broadcast, with any axes moved or reversed."""
    rank = data.draw(st.integers(1, 4))
    shape = data.draw(st.lists(st.integers(1, 7), min_size=rank, max_size=rank))
    arrays = []
    for k in range(2):
        own = [n if data.draw(st.booleans()) else 1 for n in shape]
        own = own[data.draw(st.integers(0, rank - 1)) :] if k else shape
        order = data.draw(st.permutations(range(len(own))))
        array = numbers(*[own[j] for j in order], seed=k).transpose(np.argsort(order))
        arrays.append(array[tuple(slice(None, None, data.draw(st.sampled_from((1, -1)))) for _ in own)])
    found = distance.large(xp, arrays, {})
    np.testing.assert_allclose(found, distance.formula(xp, *arrays), rtol=1e-6)
    axes = tuple(k for k in range(rank) if data.draw(st.booleans()))
    if axes:
        expected = arrays[0].sum(axes, keepdims=True, dtype=np.float64)
        np.testing.assert_allclose(total.large(xp, [arrays[0]], {"axis": axes}), expected, rtol=1e-4, atol=1e-4)


SCRIPT = """
import sys
import numpy as np
from retrograd import _thresholds
from retrograd._core.numpy_namespace import numpy_namespace as xp
from retrograd._native import machine, program
from retrograd._native.program import formula
bent = formula(lambda xp, x: x / (1 + xp.abs(x)))
x = np.linspace(-3, 3, 100_000, dtype=np.float32)
np.testing.assert_allclose(bent(xp, x), x / (1 + np.abs(x)), rtol=1e-6)
print(machine.is_available(), "llvmlite" in sys.modules)
"""


def run(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_without_llvm_formulas_run_on_numpy():
    assert run(SCRIPT, RETROGRAD_NATIVE="0") == ["False", "False"]


def test_small_arrays_never_load_llvm():
    code = SCRIPT.replace("100_000", "1000")
    assert run(code)[1] == "False"


@needs_llvm
def test_a_fork_while_another_thread_compiles_does_not_hang():
    code = """
import os, threading
import numpy as np
from retrograd._core.numpy_namespace import numpy_namespace as xp
from retrograd._native.program import formula
x = np.ones(100_000, np.float32)
def compile_many():
    for k in range(8):
        formula(lambda xp, x, k=k: x * k + xp.sqrt(x))(xp, x)
thread = threading.Thread(target=compile_many)
thread.start()
for _ in range(3):
    child = os.fork()
    if not child:
        found = formula(lambda xp, x: x * 7 - xp.sqrt(x))(xp, x)
        os._exit(0 if (found == 6).all() else 1)
    assert os.waitpid(child, 0)[1] == 0
thread.join()
print("done")
"""
    assert run(code, RETROGRAD_CACHE="0") == ["done"]


def test_a_fork_while_another_thread_imports_a_part_does_not_hang():
    code = """
import importlib.machinery, os, signal, sys, threading, time
import retrograd._native
begun = threading.Event()
class Slow:
    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self) if name == "retrograd._native.slow" else None
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        begun.set()
        time.sleep(0.3)
sys.meta_path.insert(0, Slow())
thread = threading.Thread(target=lambda: __import__("retrograd._native.slow"))
thread.start()
begun.wait()
child = os.fork()
if not child:
    signal.alarm(5)
    from retrograd._native import slow
    os._exit(0)
print(os.waitpid(child, 0)[1])
thread.join()
"""
    assert run(code) == ["0"]


@pytest.mark.parametrize("single", [(1,), (1, 4), (4, 1), (1, 1)])
def test_what_is_learnt_from_an_axis_of_one_element_is_not_used_for_longer_ones(single):
    made = formula(lambda xp, x, *, axis: x - xp.sum(x, axis=axis, keepdims=True))
    for axis in range(len(single)):
        x = numbers(*single)
        np.testing.assert_allclose(made(xp, x, axis=(axis,)), x - x.sum(axis, keepdims=True))
        y = numbers(*[3 * n for n in single])
        np.testing.assert_allclose(made(xp, y, axis=(axis,)), y - y.sum(axis, keepdims=True), rtol=1e-6)


def test_a_large_row_of_one_element_says_nothing_about_others():
    made = formula(lambda xp, x, *, axis: x - xp.sum(x, axis=axis, keepdims=True))
    wide, tall = numbers(1, 70_000), numbers(7, 10_000)
    for x in (wide, tall):
        expected = x - x.sum(0, keepdims=True)
        np.testing.assert_allclose(made(xp, x, axis=(0,)), expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(made._in_blocks(xp, [x], {"axis": (0,)}), expected, rtol=1e-4, atol=1e-5)


@needs_llvm
@pytest.mark.parametrize("dtype", [np.float32, np.float64, bfloat16, bool])
@pytest.mark.parametrize("threads", [1, 2])
def test_results_past_the_cache(monkeypatch, dtype, threads):
    """Lines of memory that are written in part, by neighbouring blocks or at the ends, keep what others have written."""
    monkeypatch.setattr(_thresholds, "STREAMED", 1)
    monkeypatch.setattr(_thresholds, "NATIVE_WORK", 1)
    monkeypatch.setattr(program, "get_num_threads", lambda: threads)

    def both(xp, x, y):
        return (x < y, x + y) if dtype is bool else (x * 2, x < y, x - y)

    for shape in ((3, 5), (2047,), (2048,), (10_001,), (5, 4099), (7, 2050)):
        made = formula(both)
        x = numbers(*shape, dtype=np.float32 if dtype is bool else dtype)
        y = numbers(*shape, dtype=x.dtype, seed=1)
        check(made, x, y, tolerance=1e-2 if dtype is bfloat16 else 1e-6)
        check(made, x, y[..., :1], tolerance=1e-2 if dtype is bfloat16 else 1e-6)
        assert all(plan.streams is (threads > 1) for plan in made.plans.values())
        assert not made.plan([x, y], {}, (True, True, True)).streams  # memory that is there may be an operand's


@needs_llvm
@pytest.mark.parametrize(
    ("compute", "dtype", "width", "side_by_side"),
    [
        pytest.param(lambda xp, x: xp.where(x > 0, x * 3 + 1, 0), np.float32, 256, False, id="waits for memory"),
        pytest.param(lambda xp, x: xp.sqrt(x), np.float32, 512, False, id="a root"),
        pytest.param(lambda xp, x: x + 1, bfloat16, 512, False, id="converts"),
        pytest.param(lambda xp, x: x - xp.sum(x, axis=(0,), keepdims=True), np.float64, 512, False, id="reduces"),
        pytest.param(lambda xp, x: xp.exp(x) * x, np.float32, 512, True, id="calls a function"),
    ],
)
def test_what_a_kernel_waits_for_decides_how_wide_its_vectors_are(monkeypatch, compute, dtype, width, side_by_side):
    texts = []
    compiled = machine.compiled
    monkeypatch.setattr(machine, "compiled", lambda text: texts.append(text) or compiled(text))
    check(formula(compute), np.abs(numbers(9000, dtype=dtype)), tolerance=1e-2 if dtype is bfloat16 else 1e-5)
    assert f'"prefer-vector-width"="{width}"' in texts[-1]
    assert ("interleave.count" in texts[-1]) is side_by_side


@needs_llvm
@pytest.mark.parametrize("make", [
    pytest.param(lambda: np.ones((1 << 23, 6), np.float32)[:, :5], id="rows with gaps"),
    pytest.param(lambda: np.ones((1024, 3, 33, 33), np.float32)[:, :, 1:, 1:], id="inner squares"),
    pytest.param(lambda: np.ones((1 << 22, 5), np.float32)[::2], id="every other row"),
])  # fmt: skip
def test_long_sums_of_any_layout_keep_their_digits(make):
    """One float32 sum of ones would stop at 2^24."""
    x = make()
    rank = x.ndim
    assert total.large(xp, [x], {"axis": tuple(range(rank))}).item() == x.size
    for axis in range(rank):
        found = total.large(xp, [x], {"axis": (axis,)})
        assert (found == x.shape[axis]).all()
    fractions = x * np.float32(0.1)
    found = total.large(xp, [fractions], {"axis": tuple(range(rank))}).item()
    assert abs(found / (x.size * float(np.float32(0.1))) - 1) < 2e-6


@needs_llvm
def test_columns_of_tall_arrays_keep_their_digits():
    x = np.random.default_rng(0).random((1 << 21, 4), np.float32)
    found = total.large(xp, [x], {"axis": (0,)})
    np.testing.assert_allclose(found, x.sum(0, keepdims=True, dtype=np.float64), rtol=3e-7)


@needs_llvm
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs signals that interrupt")
def test_an_interrupt_waits_for_the_threads():
    """A thread that goes on would read arrays that are gone."""
    code = """
import signal
import retrograd as torch
torch.set_num_threads(2)
x = torch.ones(3, 1 << 22)
def stop(*_):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, stop)
x.softmax(1)
stopped = 0
for k in range(40):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01 + 0.0011 * k)
        while True:
            x.softmax(1)
    except KeyboardInterrupt:
        stopped += 1
assert torch.equal(x.softmax(1), torch.full_like(x, 2.0 ** -22))
print(stopped)
"""
    assert run(code) == ["40"]


@needs_llvm
@pytest.mark.parametrize("axis", [1, 0])
def test_a_product_is_added_in_one_step(axis):
    """It is rounded once: what the rounding of a square leaves is what there is between the square and itself, added exactly."""

    @formula
    def dot(xp, x, y):
        return xp.sum(x * y, axis=(axis,), keepdims=True)

    a = np.float32(1 + 2**-12)
    x, y = np.tile([a, -a], (20_000, 1)).astype(np.float32), np.full((20_000, 2), a)
    if axis == 0:
        x, y = (np.ascontiguousarray(array.T) for array in (x, y))
    exact = np.float64(a) * np.float64(a)
    assert set(np.unique(dot(xp, x, y)).tolist()) == {float(np.float32(exact) - exact)}
