"""Check types, promotion, limits and the reading of Python data, against known values and the oracle."""

from __future__ import annotations

import array
import collections
import copy
import itertools
import pickle
import warnings
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrograd import _dtypes as rd
from retrograd._python_data import array_from_python, infer_from_python
from retrograd._stored import cast_array
from tests.oracle import Raised, outcome

DTYPES = {each.name: each for each in rd.ALL_DTYPES}
SCALAR_VALUES = (True, 3, 2.5, 1j)
DEFAULT_NAMES = ("float32", "float64", "float16", "bfloat16")


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _restore_defaults() -> Iterator[None]:
    yield
    rd.set_default_dtype(rd.float32)


def name_of(torch_dtype: Any) -> str:
    return str(torch_dtype).removeprefix("torch.")


# --- known values ------------------------------------------------------------------------------------------


def test_names_and_aliases() -> None:
    assert repr(rd.float32) == str(rd.float32) == "torch.float32"
    assert repr(rd.bool_) == "torch.bool"
    assert rd.ALIASES["long"] is rd.int64
    assert rd.ALIASES["half"] is rd.float16


def test_pickles_and_copies_to_the_singleton() -> None:
    for each in rd.ALL_DTYPES:
        assert pickle.loads(pickle.dumps(each)) is each
        assert copy.copy(each) is each
        assert copy.deepcopy({"a": each})["a"] is each


def test_cannot_be_made_changed_or_subclassed() -> None:
    with pytest.raises(TypeError, match=r"cannot create 'torch\.dtype' instances"):
        rd.dtype()
    with pytest.raises(TypeError, match="not an acceptable base type"):
        type("Mine", (rd.dtype,), {})
    with pytest.raises(AttributeError):
        rd.float32.name = "other"


def test_real_and_complex_partners() -> None:
    assert rd.complex128.to_real() is rd.float64
    assert rd.int32.to_real() is rd.int32
    assert rd.bfloat16.to_complex() is rd.complex64
    with pytest.raises(RuntimeError, match="Unknown Complex ScalarType for Int"):
        rd.int32.to_complex()


def test_from_numpy() -> None:
    assert rd.from_numpy(np.dtype("longlong")) is rd.int64
    assert rd.from_numpy(np.dtype(ml_dtypes.bfloat16)) is rd.bfloat16
    for each in rd.IN_MEMORY:
        assert rd.from_numpy(each.numpy) is each
    with pytest.raises(TypeError, match=r"np.ndarray of type numpy.longdouble.*uint16, uint8, and bool"):
        rd.from_numpy(np.dtype("longdouble"))


def test_promotion_known_values() -> None:
    assert rd.promote_types(rd.float16, rd.bfloat16) is rd.float32
    assert rd.promote_types(rd.uint8, rd.int8) is rd.int16
    assert rd.promote_types(rd.float64, rd.complex64) is rd.complex128
    assert rd.promote_types(rd.int64, rd.float16) is rd.float16


def test_result_known_values() -> None:
    f32, f64, i64 = (np.dtype(each) for each in ("float32", "float64", "int64"))
    assert rd.result_numpy((f32,), (f64,), (int,)) == f32
    assert rd.result_numpy((i64,), (), (float,)) == f32
    assert rd.result_numpy((i64,), (f64,), (float,)) == f64
    assert rd.result_numpy((f32,), (), (complex,)) == np.complex64
    assert rd.result_numpy((), (), (bool, int)) == i64


def test_default_dtype_clears_cached_results() -> None:
    i64 = np.dtype("int64")
    assert rd.result_numpy((i64,), (), (float,)) == np.float32
    rd.set_default_dtype(rd.float64)
    assert rd.get_default_dtype() is rd.float64
    assert rd.default_complex() is rd.complex128
    assert rd.result_numpy((i64,), (), (float,)) == np.float64
    assert array_from_python([1.5]).dtype == np.float64


def test_bfloat16_has_no_complex_default() -> None:
    rd.set_default_dtype(rd.bfloat16)
    with pytest.raises(RuntimeError, match="invalid default scalar type for complex"):
        rd.default_complex()


def test_array_from_python_is_fresh() -> None:
    source = np.arange(3.0)
    read = array_from_python(source)
    read[0] = 9
    assert source[0] == 0


def test_tensors_nested_in_lists_count_as_numbers() -> None:
    class Tensor:
        dtype = rd.float64

        def __float__(self) -> float:
            return 1.5

        def __getitem__(self, index: object) -> None:
            raise AssertionError("a tensor is not a sequence")

    read = array_from_python([2, Tensor()])
    assert read.dtype == np.float64
    assert read.tolist() == [2.0, 1.5]


def test_infer_from_python() -> None:
    assert infer_from_python([[True], [2]]) is rd.int64
    assert infer_from_python([]) is rd.float32
    assert infer_from_python(2j) is rd.complex64


# --- against the oracle ------------------------------------------------------------------------------------


@pytest.mark.oracle
@pytest.mark.parametrize("name", DTYPES)
def test_attributes(torch: Any, name: str) -> None:
    ours, theirs = DTYPES[name], getattr(torch, name)
    assert repr(ours) == repr(theirs)
    for attribute in ("is_floating_point", "is_complex", "is_signed", "itemsize", "abbr"):
        assert getattr(ours, attribute) == getattr(theirs, attribute)
    assert ours.to_real().name == name_of(theirs.to_real())
    own, expected = outcome(ours.to_complex), outcome(theirs.to_complex)
    assert (own if isinstance(own, Raised) else own.name) == (
        expected if isinstance(expected, Raised) else name_of(expected)
    )


@pytest.mark.oracle
def test_aliases(torch: Any) -> None:
    for alias, each in rd.ALIASES.items():
        assert name_of(getattr(torch, alias)) == each.name


@pytest.mark.oracle
def test_promotion_and_casting_tables(torch: Any) -> None:
    for a, b in itertools.product(DTYPES, repeat=2):
        pair = getattr(torch, a), getattr(torch, b)
        assert rd.promote_types(DTYPES[a], DTYPES[b]).name == name_of(torch.promote_types(*pair)), (a, b)
        assert rd.can_cast(DTYPES[a], DTYPES[b]) == torch.can_cast(*pair), (a, b)


@pytest.mark.oracle
@pytest.mark.parametrize("default", DEFAULT_NAMES)
def test_result_tables(torch: Any, default: str) -> None:
    operands: list[tuple[int, Any, Any]] = [(2, type(value), value) for value in SCALAR_VALUES]
    for name, each in DTYPES.items():
        operands.append((0, each.numpy, torch.zeros(1, dtype=getattr(torch, name))))
        operands.append((1, each.numpy, torch.zeros((), dtype=getattr(torch, name))))
    rd.set_default_dtype(DTYPES[default])
    torch.set_default_dtype(getattr(torch, default))
    try:
        for first, second in itertools.product(operands, repeat=2):
            groups: tuple[list[Any], ...] = ([], [], [])
            for place, kind, _ in (first, second):
                groups[place].append(kind)
            own = rd.from_numpy(rd.result_numpy(*map(tuple, groups))).name
            assert own == name_of(torch.result_type(first[2], second[2])), (first, second)
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental:UserWarning")
def test_three_operand_results(torch: Any) -> None:
    for dim, zero, value in itertools.product(DTYPES, DTYPES, SCALAR_VALUES):
        own = rd.result_numpy((DTYPES[dim].numpy,), (DTYPES[zero].numpy,), (type(value),))
        dimensioned = torch.zeros(1, dtype=getattr(torch, dim))
        zero_dim = torch.zeros((), dtype=getattr(torch, zero))
        # No public call takes all three, so join the two lesser operands the way the rule nests them.
        lesser = torch.result_type(zero_dim, value)
        expected = torch.result_type(dimensioned, torch.zeros((), dtype=lesser))
        assert rd.from_numpy(own).name == name_of(expected), (dim, zero, value)


@pytest.mark.oracle
@pytest.mark.parametrize("wrong", [None, 3, "float32"])
def test_dtype_argument_errors(torch: Any, wrong: object) -> None:
    for name in ("set_default_dtype", "finfo", "iinfo"):
        assert outcome(lambda n=name: getattr(rd, n)(wrong)) == outcome(lambda n=name: getattr(torch, n)(wrong))
    for name in ("promote_types", "can_cast"):
        assert outcome(lambda n=name: getattr(rd, n)(wrong, rd.int8)) == outcome(
            lambda n=name: getattr(torch, n)(wrong, torch.int8)
        )
        assert outcome(lambda n=name: getattr(rd, n)(rd.int8, wrong)) == outcome(
            lambda n=name: getattr(torch, n)(torch.int8, wrong)
        )


@pytest.mark.oracle
@pytest.mark.parametrize("name", DTYPES)
def test_limits(torch: Any, name: str) -> None:
    ours, theirs = DTYPES[name], getattr(torch, name)
    if not ours.is_floating_point:
        assert outcome(lambda: rd.set_default_dtype(ours)) == outcome(lambda: torch.set_default_dtype(theirs))
    for info in ("finfo", "iinfo"):
        own = outcome(lambda i=info: getattr(rd, i)(ours))
        expected = outcome(lambda i=info: getattr(torch, i)(theirs))
        if isinstance(expected, Raised):
            assert own == expected
            continue
        assert repr(own) == str(own) == repr(expected)
        for attribute in (each for each in dir(type(expected)) if not each.startswith("_")):
            assert getattr(own, attribute) == getattr(expected, attribute)
        assert own == getattr(rd, info)(ours)
        assert own != 3
        with pytest.raises(TypeError, match="unhashable"):
            hash(own)


@pytest.mark.oracle
def test_default_finfo(torch: Any) -> None:
    assert repr(rd.finfo()) == repr(torch.finfo())
    rd.set_default_dtype(rd.float16)
    assert rd.finfo().dtype == "float16"


@pytest.mark.oracle
@pytest.mark.parametrize("spelling", ["O", "U1", "longdouble", "datetime64[s]", ">f4", ">i8"])
def test_unsupported_numpy_types(torch: Any, spelling: str) -> None:
    unsupported = np.zeros(2, spelling)
    expected = outcome(lambda: torch.from_numpy(unsupported))
    assert outcome(lambda: rd.from_numpy(unsupported.dtype)) == expected
    assert outcome(lambda: array_from_python(unsupported)) == expected


class HasFloat:
    def __float__(self) -> float:
        return 1.5


class HasIndex:
    def __index__(self) -> int:
        return 3


class HasItems:
    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> int:
        if index > 1:
            raise IndexError
        return index


endless: list[Any] = []
endless.append(endless)
containing_itself: list[Any] = [1]
containing_itself.append(containing_itself)

PYTHON_DATA: list[Any] = [
    [], [[]], [[], []], [[], [1]], [[1], []], (), [[], 1], [[], [1j]], [[], "a"], [[], None], [[[]]],
    [1, [2]], [1, [2.5]], [[1, 2], [3, 4, 5]], [[1, 2], 3], [[1, 2], 3.5], [[1, 2], None], [[[1]], [[2, 3]]],
    [[[1, 2], [3, 4]], [[5, 6]]], [[1], [[2]]], [[1], [None]], [[1, 2], [3, "a"]], [[1, 2], "ab"],
    "abc", "", ["a"], [""], ["a", 1], [1, 2, "a"], b"abc", [b"abc"], [b""], bytearray(b"abc"),
    memoryview(b"ab"),
    None, [None], [1, None], {}, {1: 2}, {1, 2}, [{}], [{1, 2}], [[1, 2], {3, 4}], object, ..., [...],
    range(3), [range(3), range(3)], collections.deque([1, 2]), collections.UserList([1, 2]),
    HasItems(), [HasItems()],
    array.array("d", [1, 2]), [array.array("i", [1, 2])], endless, containing_itself,
    True, False, 3, 0, -1, 2.5, -1.5, 1j, 0j, 1 + 0j, [True, 1], [True, 1.5], [1, 2.5], [1, 2j], [1.0, 2j],
    [True, False], [[1.5, 2], [True, 3j]], ((1, 2), [3, 4]), [(1, 2), (3, 4)],
    2**63, 2**63 - 1, -(2**63), -(2**63) - 1, [2**64], [1, 2**63], [10**400], [1.0, 2**70], [1j, 2**70],
    300, -128, -129, -255, -256, 255, 256, 128, [2**15], 2**31, 2**62 + 1,
    1e20, 300.5, -0.5, 255.5, 127.5, -128.5, 2.0**63, -(2.0**63), -(2.0**63) - 3000, 2.0**63 + 3000,
    1e300, 1e39,
    float("nan"), float("inf"), 0.1, 1 + 2**-11 + 2**-40, 1.00390625 + 1e-12, [True, 2.7, 3],
    HasFloat(), [HasFloat()], HasIndex(), [HasIndex()], Fraction(1, 2), [Fraction(1, 2)],
    Decimal(1), [Decimal(1)],
    np.float32(1.5), np.float64(1.5), np.float16(1.5), np.int8(3), np.int64(300), np.bool_(True),
    np.complex64(1),
    np.complex128(0.5), np.longdouble(1), np.str_("a"), np.datetime64(1, "s"), [np.datetime64(1, "s")],
    [np.float32(1.5)], [np.float64(1.5)], [np.float16(1.5), 1], [np.float16(1.5), 1.5], [np.int8(3)],
    [np.int8(3), np.float32(2)], [np.int8(3), 1], [np.int8(3), True], [np.bool_(True)],
    [np.bool_(True), True],
    [np.bool_(True), 1], [np.bool_(True), 1.5], [np.complex64(1)], [np.complex128(1), None], [np.int64(300)],
    [1, np.complex128(1)], [np.str_("a")], [1, np.str_("a")],
    np.array([1, 2], np.int8), np.array(1.5), np.array([]), np.array(["a"]), np.arange(3)[::-1],
    np.array([300]),
    np.array([1.7, -1.7]), np.array([1 + 1j]), np.array([1e300]), np.array([1 + 2**-11 + 2**-40]),
    np.array([300.7, -1.5, -300.0, 40000.0]), np.ones((2, 3)).T, np.array([True, False]),
    np.array([2**40 + 300]),
    [np.array([1, 2], np.int8)], [np.array([1.0, 2]), np.array([1.0, 2], np.float32)],
    [np.array([1.0, 2]), [1, 2]],
    [[1, 2], np.array([1.0, 2])], [np.array(1.5)], [2, np.array(1.5)], [np.array([])],
    [np.array([], np.int8)],
    [np.array([1, 2]), np.array([1, 2, 3])], [np.array([True])], [np.array([1j])], [np.array(["a"])],
    [np.array([1, 2], np.int8), np.array([True, False])], [[np.array([1, 2])], [[3.5, 4]]],
    [np.zeros((2, 2))],
    [[1], np.array(3)], [np.array([object()])], [np.zeros(1, np.longdouble)],
]  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("target", [None, *DTYPES])
def test_python_data(torch: Any, target: str | None) -> None:
    own_dtype = None if target is None else DTYPES[target]
    torch_dtype = None if target is None else getattr(torch, target)
    faults = []
    for data in PYTHON_DATA:
        own = outcome(lambda d=data: array_from_python(d, own_dtype))
        expected = outcome(lambda d=data: torch.tensor(d, dtype=torch_dtype))
        if not same(torch, own, expected):
            faults.append((data if data is not endless else "endless", own, expected))
    assert faults == []


def same(torch: Any, ours: Any, theirs: Any) -> bool:
    if isinstance(ours, Raised) or isinstance(theirs, Raised):
        return ours == theirs
    if rd.from_numpy(ours.dtype).name != name_of(theirs.dtype) or ours.shape != tuple(theirs.shape):
        return False
    if theirs.dtype == torch.bfloat16:
        ours, theirs = ours.astype(np.float32), theirs.float()
    return ours.tobytes() == theirs.numpy().tobytes()


plain_numbers = st.booleans() | st.integers(-(2**64), 2**64) | st.integers(-300, 300) | st.floats(width=64)
nested_numbers = st.recursive(
    plain_numbers | st.complex_numbers(), lambda inner: st.lists(inner, max_size=3), max_leaves=8
)


@pytest.mark.oracle
@settings(max_examples=300, deadline=None)
@given(data=nested_numbers, target=st.sampled_from([None, *DTYPES]))
def test_any_python_data(data: Any, target: str | None) -> None:
    torch = pytest.importorskip("torch")
    own = outcome(lambda: array_from_python(data, None if target is None else DTYPES[target]))
    expected = outcome(lambda: torch.tensor(data, dtype=None if target is None else getattr(torch, target)))
    if not isinstance(own, Raised) and not isinstance(expected, Raised) and np.isnan(own.astype(np.complex128)).any():
        # NaN has many encodings and no promise is made about which one is kept.
        assert rd.from_numpy(own.dtype).name == name_of(expected.dtype)
        np.testing.assert_array_equal(own.astype(np.complex128), expected.to(torch.complex128).numpy())
    else:
        assert same(torch, own, expected), (own, expected)


@pytest.mark.oracle
@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_cast_array(torch: Any, source: str, target: str) -> None:
    values = torch.tensor([0, 1, 2, 3, 100, 127], dtype=getattr(torch, source))
    if DTYPES[source].is_signed:
        values = torch.cat([values, -values, values * 1.3, values / 7]).to(values.dtype)
    own = values.float().numpy().astype(ml_dtypes.bfloat16) if source == "bfloat16" else values.numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cast = cast_array(own, DTYPES[target].numpy)
        expected = values.to(getattr(torch, target))
    assert same(torch, cast, expected)
