"""Check the random stream against values and words recorded from torch 2.13.0, without torch."""

from __future__ import annotations

import copy
import math
import pickle
import subprocess
import sys
import zlib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrograd import _random as rr
from retrograd._random import arithmetic, integers


def same_bits(ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any]) -> bool:
    return ours.dtype == theirs.dtype and ours.shape == theirs.shape and ours.tobytes() == theirs.tobytes()


def words_used(gen: rr.Generator) -> int:
    """Return the cursor, which is the number of words used since seeding where that is at most 624."""
    return int(gen.get_state()[16:24].view(np.uint64)[0])


# Per draw of 18 values after seeding with 42: the words used, the first three and the last three values.
RECORDED: dict[str, tuple[Callable[[rr.Generator], Any], int, list[Any], list[Any]]] = {
    "uniform float16": (
        lambda g: rr.uniform(g, (18,), np.float16, -1.0, 2.5),
        18,
        [2.087890625, 2.203125, 0.340087890625],
        [0.5029296875, 2.099609375, 1.0087890625],
    ),
    "uniform float32": (
        lambda g: rr.uniform(g, (18,), np.float32, -1.0, 2.5),
        18,
        [2.087942361831665, 2.2025139331817627, 0.3400231599807739],
        [0.5029157400131226, 2.099050283432007, 1.0086655616760254],
    ),
    "uniform float64": (
        lambda g: rr.uniform(g, (18,), np.float64, -1.0, 2.5),
        36,
        [-0.7964592991349961, -0.7798144140139786, -0.5674487452895685],
        [1.1435280614782695, -0.6916157527990014, 1.4541366218243026],
    ),
    "uniform complex64": (
        lambda g: rr.uniform(g, (9,), np.complex64).view(np.float32),
        18,
        [0.8822692632675171, 0.9150039553642273, 0.38286375999450684],
        [0.42940449714660645, 0.8854429125785828, 0.5739044547080994],
    ),
    "normal float16": (
        lambda g: rr.normal(g, (18,), np.float16, 0.5, 2.0),
        32,
        [4.35546875, 3.474609375, 3.78515625],
        [0.58349609375, -0.00315093994140625, 2.21875],
    ),
    "normal bfloat16": (
        lambda g: rr.normal(g, (18,), ml_dtypes.bfloat16, 0.5, 2.0).astype(np.float32),
        32,
        [4.34375, 3.46875, 3.78125],
        [0.58203125, -0.003143310546875, 2.21875],
    ),
    "normal float32": (
        lambda g: rr.normal(g, (18,), np.float32, 0.5, 2.0),
        34,
        [4.353830337524414, 3.4745681285858154, -0.4947950839996338],
        [2.219717025756836, -0.1194535493850708, -0.29142099618911743],
    ),
    "normal float64": (
        lambda g: rr.normal(g, (18,), np.float64, 0.5, 2.0),
        68,
        [1.0991125755005275, 0.9847555816178821, 3.0431819335542176],
        [2.210431922944574, 0.998823759383153, 1.0231673814225917],
    ),
    "normal complex128": (
        lambda g: rr.normal(g, (9,), np.complex128).view(np.float64),
        68,
        [0.21181828241528017, 0.17138697949001666, 0.8991505955036514],
        [0.6047290057360272, 0.1763608314383971, 0.1849676015497618],
    ),
    "seven normals": (
        lambda g: rr.normal(g, (7,), np.float64, 0.5, 2.0),
        16,
        [1.1733807087677177, 0.7576188102731793, 0.9689247267230634],
        [-1.7457127534763406, 0.12734340141645106, 4.9164026711787825],
    ),
    "exponential": (
        lambda g: rr.exponential(g, (18,), np.float64, 1.5),
        36,
        [0.039942677127201426, 0.04331741919559019, 0.0879445199893937],
        [0.6319172015134455, 0.06149044956642914, 0.8052801499880635],
    ),
    "cauchy": (
        lambda g: rr.cauchy(g, (18,), np.float64, 0.5, 2.0),
        36,
        [-10.324974593994627, -9.487402160112728, -4.3897486534543475],
        [1.237386338361252, -6.539815367870409, 1.9644617878354782],
    ),
    "log_normal": (
        lambda g: rr.log_normal(g, (18,), np.float64, 0.5, 2.0),
        36,
        [3.232903690443492, 2.1331906364007347, 2.6351094726368487],
        [11.200333872707983, 23.20273779197065, 8.451800889468483],
    ),
    "geometric": (lambda g: rr.geometric(g, (18,), np.int64, 0.1), 36, [27, 27, 20], [5, 24, 4]),
    "bernoulli": (lambda g: rr.bernoulli(g, 0.4, (18,), np.int64), 36, [1, 1, 1], [0, 1, 0]),
    "bernoulli each": (
        lambda g: rr.bernoulli(g, np.linspace(0, 1, 18, dtype=np.float32), (18,), np.int64),
        18,
        [0, 0, 0],
        [1, 1, 1],
    ),
    "randint": (lambda g: rr.randint(g, (18,), -10, 10, np.int64), 18, [-8, -3, 6], [2, 5, 5]),
    "wide randint": (
        lambda g: rr.randint(g, (18,), -(2**40), 2**40, np.int64),
        36,
        [-658003837517, 395924837646, -640896347065],
        [88551408800, 874505391417, -1009286964996],
    ),
    "random_ int8": (lambda g: rr.random_(g, (18,), np.int8), 18, [102, 51, 92], [116, 99, 103]),
    "random_ float64": (
        lambda g: rr.random_(g, (18,), np.float64),
        36,
        [523809042610868.0, 566644413140339.0, 1113164382588524.0],
        [5516338387960617.0, 793622389017290.0, 6315685014607050.0],
    ),
    "random_ everything": (
        lambda g: rr.random_(g, (18,), np.int64, -(2**63)),
        36,
        [6909045637428952499, -909160480315697906, -4943839226470214585],
        [3383216058915832992, 5612278758092655929, -8766696389103118084],
    ),
    "randperm": (lambda g: rr.randperm(g, 18), 17, [6, 15, 14], [9, 0, 1]),
    "multinomial": (
        lambda g: rr.multinomial(g, np.arange(18, dtype=np.float32), 10),
        36,
        [16, 8, 9],
        [15, 1, 2],
    ),
    "multinomial replacing": (
        lambda g: rr.multinomial(g, np.arange(18, dtype=np.float32), 10, True),
        20,
        [4, 4, 6],
        [17, 5, 6],
    ),
}


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_values(name: str) -> None:
    draw, used, first, last = RECORDED[name]
    gen = rr.Generator(42)
    values = draw(gen).tolist()
    # Another machine's libm may differ in the last bits.
    assert values[:3] == pytest.approx(first, rel=1e-14, abs=0)
    assert values[-3:] == pytest.approx(last, rel=1e-14, abs=0)
    assert words_used(gen) == used


def test_recorded_state() -> None:
    gen = rr.Generator(42)
    assert gen.get_state().shape == (5056,)
    assert zlib.crc32(gen.get_state().tobytes()) == 3998256470
    rr.uniform(gen, (1000,), np.float32)
    assert zlib.crc32(gen.get_state().tobytes()) == 1690001495


def test_importing_is_cheap() -> None:
    program = """
import sys, types
alone = types.ModuleType("retrograd")
alone.__path__ = sys.argv[1:]
sys.modules["retrograd"] = alone
import retrograd._random
print([name for name in ("numpy.random", "scipy", "ml_dtypes", "fractions") if name in sys.modules])
"""
    package = str(Path(rr.__file__).parents[1])
    done = subprocess.run([sys.executable, "-c", program, package], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_seeds() -> None:
    gen = rr.Generator()
    assert gen.initial_seed() == 67280421310721
    assert gen.manual_seed(-1) is gen
    assert gen.initial_seed() == 2**64 - 1
    assert gen.manual_seed(-(2**63)).initial_seed() == 2**63
    assert gen.seed() == gen.initial_seed() != gen.seed()
    low, high = rr.Generator(5), rr.Generator(5 + 2**32)
    assert low.random32(9).tolist() == high.random32(9).tolist()
    assert low.initial_seed() != high.initial_seed()


@pytest.mark.parametrize(
    ("seed", "error", "message"),
    [
        (2**64, ValueError, "Overflow when unpacking long long"),
        (-(2**63) - 1, ValueError, "Overflow when unpacking long long"),
        (1.5, RuntimeError, "manual_seed expected a long, but got float"),
        (True, RuntimeError, "manual_seed expected a long, but got bool"),
        (None, RuntimeError, "manual_seed expected a long, but got NoneType"),
        (np.float64(3), RuntimeError, "manual_seed expected a long, but got numpy.float64"),
        (np.int64(3), TypeError, "an integer is required"),
    ],
)
def test_refused_seeds(seed: Any, error: type[Exception], message: str) -> None:
    gen = rr.Generator(3)
    with pytest.raises(error) as caught:
        gen.manual_seed(seed)
    assert str(caught.value) == message
    assert gen.initial_seed() == 3


def test_refused_states() -> None:
    gen = rr.Generator(3)
    state = gen.get_state()
    with pytest.raises(TypeError, match=r"RNG state must be a torch\.ByteTensor"):
        gen.set_state(state.astype(np.float32))
    with pytest.raises(RuntimeError, match="size 5056 but found the input RNG state size to be 10"):
        gen.set_state(state[:10])
    with pytest.raises(RuntimeError, match="Invalid mt19937 state"):
        gen.set_state(np.zeros_like(state))
    for method in (gen.get_offset, lambda: gen.set_offset(1)):
        with pytest.raises(RuntimeError, match="CPU Generator does not use offset"):
            method()
    assert same_bits(gen.get_state(), state)


@pytest.mark.parametrize("used", [0, 1, 5, 623, 624, 625, 1248])
@pytest.mark.parametrize("normals", [0, 1, 2])
@pytest.mark.parametrize("how", ["set_state", "clone_state", "deepcopy", "pickle"])
def test_copies_continue_the_stream(used: int, normals: int, how: str) -> None:
    gen = rr.Generator(11)
    gen.random32(used)
    rr.normal(gen, (normals,), np.float64)
    copies: dict[str, Callable[[], rr.Generator]] = {
        "set_state": lambda: rr.Generator().set_state(gen.get_state()),
        "clone_state": gen.clone_state,
        "deepcopy": lambda: copy.deepcopy(gen),
        "pickle": lambda: pickle.loads(pickle.dumps(gen)),
    }
    other = copies[how]()
    assert same_bits(other.get_state(), gen.get_state())
    assert other.initial_seed() == 11
    expected = rr.normal(gen, (9,), np.float64)
    assert not same_bits(other.get_state(), gen.get_state())
    assert same_bits(rr.normal(other, (9,), np.float64), expected)


def test_a_new_seed_drops_the_cached_normal() -> None:
    gen = rr.Generator(11)
    first = rr.normal(gen, (3,), np.float64)
    assert gen.next_normal is not None
    assert same_bits(rr.normal(gen.manual_seed(11), (3,), np.float64), first)


REFUSED: list[tuple[Callable[[rr.Generator], Any], type[Exception], str]] = [
    (
        lambda g: rr.uniform(g, (3,), np.int64),
        NotImplementedError,
        "\"check_uniform_bounds\" not implemented for 'Long'",
    ),
    (
        lambda g: rr.uniform(g, (0,), np.float32, 2, 1),
        RuntimeError,
        "uniform_ expects to return a [from, to) range, but found from=2 > to=1",
    ),
    (lambda g: rr.uniform(g, (3,), np.float32, 0, 1e300), RuntimeError, "to is out of bounds for float"),
    (lambda g: rr.uniform(g, (3,), np.float32, math.nan), RuntimeError, "from is out of bounds for float"),
    (
        lambda g: rr.uniform(g, (3,), np.float16, -65504, 65504),
        RuntimeError,
        "uniform_ expects to-from <= std::numeric_limits<Half>::max(), but found to=65504 and from=-65504 "
        "which result in to-from to exceed the limit",
    ),
    (
        lambda g: rr.normal(g, (0,), np.float32, 0, -1),
        RuntimeError,
        "normal expects std >= 0.0, but found std -1",
    ),
    (
        lambda g: rr.normal(g, (3,), np.bool_),
        NotImplementedError,
        "\"normal_kernel_cpu\" not implemented for 'Bool'",
    ),
    (
        lambda g: rr.exponential(g, (3,), np.float32, 0),
        RuntimeError,
        "exponential_ expects lambda > 0.0, but found lambda=0",
    ),
    (
        lambda g: rr.exponential(g, (3,), np.int16),
        RuntimeError,
        "Exponential distribution is a continuous probability distribution. dtype must be a floating point "
        "but you specified Short",
    ),
    (
        lambda g: rr.cauchy(g, (0,), np.int16),
        RuntimeError,
        "Cauchy distribution is a continuous probability distribution. dtype must be a floating point "
        "but you specified short int",
    ),
    (
        lambda g: rr.cauchy(g, (3,), np.float32, 0, 0),
        RuntimeError,
        "cauchy_ expects sigma > 0.0, but found sigma=0",
    ),
    (
        lambda g: rr.log_normal(g, (3,), np.float32, 0, 0),
        RuntimeError,
        "log_normal_ expects std > 0.0, but found std=0",
    ),
    (
        lambda g: rr.geometric(g, (3,), np.float32, 1),
        RuntimeError,
        "geometric_ expects p to be in (0, 1), but got p=1",
    ),
    (
        lambda g: rr.bernoulli(g, 1.5, (3,)),
        RuntimeError,
        "bernoulli_ expects p to be in [0, 1], but got p=1.5",
    ),
    (
        lambda g: rr.bernoulli(g, np.ones(3, np.int64), (3,)),
        NotImplementedError,
        "\"bernoulli_tensor_cpu_p_\" not implemented for 'Long'",
    ),
    (
        lambda g: rr.randint(g, (3,), 5, 5, np.int64),
        RuntimeError,
        "random_ expects 'from' to be less than 'to', but got from=5 >= to=5",
    ),
    (
        lambda g: rr.randint(g, (3,), -1, 3, np.uint8),
        RuntimeError,
        "from is out of bounds for unsigned char",
    ),
    (
        lambda g: rr.randint(g, (3,), 0, 2**30, np.float16),
        RuntimeError,
        "to - 1 is out of bounds for c10::Half",
    ),
    (
        lambda g: rr.random_(g, (3,), np.float16, 3000),
        RuntimeError,
        "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted to dtype, "
        "but got from=3000 > to_inc=2048",
    ),
    (
        lambda g: rr.random_(g, (3,), np.int32, -(2**63)),
        RuntimeError,
        "random_full_64_bits_range_kernel_cpu handles only int64, double, float and bfloat16",
    ),
    (
        lambda g: rr.randperm(g, -1),
        RuntimeError,
        "Trying to create tensor with negative dimension -1: [-1]",
    ),
    (
        lambda g: rr.randperm(g, 129, np.int8),
        RuntimeError,
        "value cannot be converted to type int8_t without overflow",
    ),
    (
        lambda g: rr.randperm(g, 2050, np.float16),
        RuntimeError,
        "n cannot be greater than 2049 for Half type.",
    ),
    (lambda g: rr.multinomial(g, np.ones(3), 0), RuntimeError, "cannot sample n_sample <= 0 samples"),
    (
        lambda g: rr.multinomial(g, np.ones(3), 4),
        RuntimeError,
        "cannot sample n_sample > prob_dist.size(-1) samples without replacement",
    ),
    (lambda g: rr.multinomial(g, np.ones((1, 1, 1)), 1), RuntimeError, "prob_dist must be 1 or 2 dim"),
    (
        lambda g: rr.multinomial(g, np.zeros(3), 1),
        RuntimeError,
        "invalid multinomial distribution (sum of probabilities <= 0)",
    ),
    (
        lambda g: rr.multinomial(g, np.array([1.0, -1.0]), 1),
        RuntimeError,
        "probability tensor contains either `inf`, `nan` or element < 0",
    ),
    (
        lambda g: rr.multinomial(g, np.array([1.0, math.inf]), 2, True),
        RuntimeError,
        "invalid multinomial distribution (encountering probability entry = infinity or NaN)",
    ),
]


@pytest.mark.parametrize(("draw", "error", "message"), REFUSED)
def test_refusals_leave_the_stream(draw: Callable[[rr.Generator], Any], error: type[Exception], message: str) -> None:
    gen = rr.Generator(3)
    with pytest.raises(error) as caught:
        draw(gen)
    assert str(caught.value) == message
    assert words_used(gen) == 0


def test_refusals_in_the_middle_keep_what_torch_drew() -> None:
    gen = rr.Generator(3)
    with pytest.raises(RuntimeError, match="Expected p_in >= 0 && p_in <= 1 to be true"):
        rr.bernoulli(gen, np.array([0.1, 0.2, 2.0], np.float32), (3,))
    assert words_used(gen) == 2
    gen.manual_seed(3)
    with pytest.raises(RuntimeError, match="sum of probabilities <= 0"):
        rr.multinomial(gen, np.array([[1.0, 1.0], [0.0, 0.0]]), 3, True)
    assert words_used(gen) == 6


def test_wide_float_ranges_warn() -> None:
    with pytest.warns(UserWarning, match=r"to - 1 is out of bounds \[-\(2\^24\), 2\^24\]"):
        rr.randint(rr.Generator(3), (3,), 0, 2**30, np.float32)


@given(st.integers(0, 300), st.integers(0, 2**64 - 1))
def test_permutations_are_those_of_the_loops(n: int, seed: int) -> None:
    gen = rr.Generator(seed)
    forwards = list(range(n))
    for step in range(n - 1):
        partner = step + int(gen.random32(1)[0]) % (n - step)
        forwards[step], forwards[partner] = forwards[partner], forwards[step]
    assert rr.randperm(rr.Generator(seed), n).tolist() == forwards
    partners = gen.random64(n) % np.arange(1, n + 1, dtype=np.uint64)
    inside_out: list[int] = []
    for step, partner in enumerate(partners.tolist()):
        inside_out.append(step)
        inside_out[step] = inside_out[partner]
        inside_out[partner] = step
    assert integers._shuffle_inside_out(partners.astype(np.int64)).tolist() == inside_out


ordinary = st.floats(-1e9, 1e9).filter(lambda value: value == 0 or abs(value) > 1e-9)


@given(st.lists(ordinary, min_size=1), ordinary, ordinary)
def test_fused_doubles_are_rounded_once(values: list[float], scale: float, offset: float) -> None:
    exact = [float(Fraction(value) * Fraction(scale) + Fraction(offset)) for value in values]
    assert arithmetic.multiply_add64(np.array(values), scale, offset).tolist() == exact


@given(st.integers(0, 2**24 - 1), st.integers(1, 2**24 - 1), st.integers(-30, 30))
def test_fused_floats_are_rounded_once(value: int, scale: int, exponent: int) -> None:
    offset = 2.0**exponent
    fused = arithmetic.multiply_add32(np.array([value], np.float32), scale * 2.0**-40, offset)
    candidates = [np.nextafter(fused[0], np.float32(side)) for side in (-math.inf, math.inf)]
    exact = Fraction(value) * Fraction(scale) / 2**40 + Fraction(offset)
    error = abs(Fraction(float(fused[0])) - exact)
    for candidate in candidates:
        other = abs(Fraction(float(candidate)) - exact)
        assert error < other or (error == other and not int(fused[0].view(np.uint32)) & 1)


@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3), (4, 1, 5)])
def test_shapes(shape: tuple[int, ...]) -> None:
    gen = rr.Generator(3)
    for dtype in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64):
        for values in (rr.uniform(gen, shape, dtype), rr.normal(gen, shape, dtype)):
            assert values.shape == shape
            assert values.dtype == dtype
            assert values.flags.c_contiguous
