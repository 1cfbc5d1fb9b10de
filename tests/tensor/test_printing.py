"""Check printed tensors against PyTorch where it is installed, and against recorded texts everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from retrograd.tensor._object import printing as _printing
from retrograd.tensor._object.printing import (
    format_array,
    get_printoptions,
    printoptions,
    scalar_format,
    set_printoptions,
    tensor_repr,
)
from tests.oracle import said, whole

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
INTEGER_DTYPES = ["bool", "int8", "uint8", "int16", "int32", "int64", "uint16", "uint32", "uint64"]
FLOAT_DTYPES = ["float16", "bfloat16", "float32", "float64"]
COMPLEX_DTYPES = ["complex64", "complex128"]
DEFAULTS = {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}

NAN, INF = float("nan"), float("inf")
TELLING_FLOATS = [
    0.0,
    -0.0,
    NAN,
    INF,
    -INF,
    1.0,
    -1.0,
    0.1,
    0.3,
    100.0,
    300.0,
    1000.0,
    1001.0,
    1e-3,
    1e-4,
    9e-5,
]
TELLING_FLOATS += [1e-5, 2.5, 99999999.0, 1e8, 1.00000008e8, 1e9, 123456.5, 6e4, 6e-8, -12.75, 1 / 3]


@pytest.fixture(autouse=True)
def _default_options() -> Iterator[None]:
    set_printoptions(profile="default")
    yield
    set_printoptions(profile="default")


@pytest.fixture(scope="module")
def torch() -> ModuleType:
    return pytest.importorskip("torch")  # type: ignore[no-any-return]


def as_dtype(values: NDArray[Any], dtype: str) -> NDArray[Any]:
    with np.errstate(all="ignore"):
        return values.astype(BFLOAT16 if dtype == "bfloat16" else dtype)


def to_torch(torch: ModuleType, array: NDArray[Any]) -> Any:
    # Torch refuses negative strides and warns of read-only memory; what it prints depends on neither.
    array = array.copy()
    if array.dtype == BFLOAT16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def numbers_for(dtype: str) -> st.SearchStrategy[Any]:
    if dtype == "bool":
        return st.booleans()
    if dtype in INTEGER_DTYPES:
        info = np.iinfo(dtype)
        return st.integers(max(info.min, -12), 120) | st.integers(info.min, info.max)
    floats = (
        st.sampled_from(TELLING_FLOATS)
        | st.floats(-1e5, 1e5)
        | st.integers(-1200, 1200).map(float)
        | st.floats(allow_nan=True, width=32)
    )
    return st.builds(complex, floats, floats) if dtype in COMPLEX_DTYPES else floats


@st.composite
def arrays(draw: st.DrawFn, dtypes: list[str] | None = None) -> NDArray[Any]:
    """Draw an array by tiling a small pool of values over a shape that may be large or empty."""
    dtype = draw(st.sampled_from(dtypes or INTEGER_DTYPES + FLOAT_DTYPES + COMPLEX_DTYPES))
    pool = draw(st.lists(numbers_for(dtype), min_size=1, max_size=8))
    shape = draw(
        hnp.array_shapes(min_dims=0, max_dims=4, min_side=1, max_side=6)
        | hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
        | st.tuples(st.integers(7, 1300))
        | st.tuples(st.integers(1, 60), st.integers(1, 60))
        | st.tuples(st.integers(1, 13), st.integers(1, 13), st.integers(1, 13))
    )
    wide = {"uint64": "uint64", "bool": "bool"}.get(dtype, "int64" if dtype in INTEGER_DTYPES else "complex128")
    wide = "float64" if dtype in FLOAT_DTYPES else wide
    array = as_dtype(np.resize(np.array(pool, dtype=wide), shape), dtype)
    match draw(st.sampled_from(["contiguous", "transposed", "strided", "reversed", "broadcast"])):
        case "transposed":
            return array.T
        case "strided" if array.ndim:
            return array[..., ::2]
        case "reversed" if array.ndim:
            return array[::-1]
        case "broadcast" if array.size:
            return np.broadcast_to(array.ravel()[0], array.shape)
    return array


OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "precision": st.integers(0, 9),
        "threshold": st.integers(0, 40) | st.just(INF),
        "edgeitems": st.integers(0, 5),
        "linewidth": st.integers(0, 160),
        "sci_mode": st.booleans(),
        "profile": st.sampled_from(["default", "short", "full", "unheard of"]),
    },
)


def assert_prints_alike(torch: ModuleType, options: dict[str, Any], array: NDArray[Any], **kwargs: Any) -> None:
    theirs = kwargs.pop("tensor", None)
    theirs = to_torch(torch, array) if theirs is None else theirs
    with torch._tensor_str.printoptions(**options), printoptions(**options):
        assert get_printoptions() == torch._tensor_str.get_printoptions()
        assert tensor_repr(array, **kwargs) == repr(theirs)


@pytest.mark.oracle
@settings(max_examples=300, deadline=None)
@given(array=arrays())
def test_default_options_agree_with_torch(torch: ModuleType, array: NDArray[Any]) -> None:
    assert_prints_alike(torch, {}, array)


@pytest.mark.oracle
@settings(max_examples=300, deadline=None)
@given(array=arrays(), options=OPTIONS)
@example(array=np.array(3.0), options={"edgeitems": 0, "threshold": 0})
@example(array=np.zeros((3, 4)), options={"edgeitems": 0, "threshold": 0})
@example(array=np.zeros(3), options={"sci_mode": True})
def test_varied_options_agree_with_torch(torch: ModuleType, array: NDArray[Any], options: dict[str, Any]) -> None:
    assert_prints_alike(torch, options, array)


@pytest.mark.oracle
@settings(max_examples=150, deadline=None)
@given(array=arrays(FLOAT_DTYPES + COMPLEX_DTYPES), options=OPTIONS, is_leaf=st.booleans())
def test_gradient_suffixes_agree_with_torch(
    torch: ModuleType, array: NDArray[Any], options: dict[str, Any], is_leaf: bool
) -> None:
    leaf = to_torch(torch, array).requires_grad_()
    if is_leaf:
        assert_prints_alike(torch, options, array, tensor=leaf, requires_grad=True)
        parameter = torch.nn.Parameter(leaf.detach())
        assert_prints_alike(torch, options, array, tensor=parameter, requires_grad=True, is_parameter=True)
    else:
        grad_fn = "CloneBackward0"
        assert_prints_alike(torch, options, array, tensor=leaf.clone(), requires_grad=True, grad_fn_name=grad_fn)


@pytest.mark.oracle
@settings(max_examples=100, deadline=None)
@given(array=arrays(["float32", "float64"]), options=OPTIONS)
def test_tangent_suffix_agrees_with_torch(torch: ModuleType, array: NDArray[Any], options: dict[str, Any]) -> None:
    forward_ad = torch.autograd.forward_ad
    with forward_ad.dual_level(), torch._tensor_str.printoptions(**options), printoptions(**options):
        dual = forward_ad.make_dual(to_torch(torch, array), to_torch(torch, array))
        # The tangent is written as by format(), so a 0-d one is a bare Python number.
        tangent = scalar_format(array, "", otherwise=lambda: tensor_repr(array))
        ours = tensor_repr(array, extra_suffixes=[f"tangent={tangent}"])
        assert ours == repr(dual)


@pytest.mark.oracle
@settings(max_examples=100, deadline=None)
@given(array=arrays(), linewidth=st.integers(1, 120))
def test_subclasses_and_meta_tensors_agree_with_torch(torch: ModuleType, array: NDArray[Any], linewidth: int) -> None:
    class RatherLongSubclass(torch.Tensor):  # type: ignore[misc, name-defined]
        pass

    tensor = to_torch(torch, array)
    options = {"linewidth": linewidth, "threshold": 50}
    subclassed = tensor.as_subclass(RatherLongSubclass)
    assert_prints_alike(torch, options, array, tensor=subclassed, class_name="RatherLongSubclass")
    on_meta = {"device_text": "meta", "has_values": False}
    assert_prints_alike(torch, options, array, tensor=tensor.to("meta"), **on_meta)


@pytest.mark.oracle
@settings(max_examples=200, deadline=None)
@given(low=st.floats(2**-10, 2**16, width=32), nudge=st.integers(-2, 2))
def test_ratio_at_the_scientific_limit_agrees_with_torch(torch: ModuleType, low: float, nudge: int) -> None:
    pair = np.array([low, low * 1000], dtype=np.float32)
    for _ in range(abs(nudge)):
        pair[1] = np.nextafter(pair[1], np.float32(np.sign(nudge) * np.inf))
    assert_prints_alike(torch, {}, pair)


@pytest.mark.oracle
@pytest.mark.parametrize("default", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("dtype", INTEGER_DTYPES + FLOAT_DTYPES + COMPLEX_DTYPES)
@pytest.mark.parametrize("shape", [(), (2,), (0,), (0, 3)])
def test_dtype_suffix_follows_the_default_dtype(
    torch: ModuleType, default: str, dtype: str, shape: tuple[int, ...]
) -> None:
    array = as_dtype(np.ones(shape), dtype)
    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, default))
    try:
        assert_prints_alike(torch, {}, array, default_float_text=f"torch.{default}")
    finally:
        torch.set_default_dtype(before)


@pytest.mark.oracle
@settings(max_examples=150, deadline=None)
@given(
    array=arrays().filter(lambda array: array.size <= 100),
    spec=st.sampled_from(["", ".3f", "d", ">12", "e", "+.2e", "5", "no such spec"]),
)
def test_format_agrees_with_torch(torch: ModuleType, array: NDArray[Any], spec: str) -> None:
    ours, theirs = (
        said(write, words=whole, kinds=(TypeError, ValueError), ignore_warnings=False)
        for write in (
            lambda: scalar_format(array, spec, otherwise=lambda: tensor_repr(array)),
            lambda: format(to_torch(torch, array), spec),
        )
    )
    assert ours == theirs


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([1.0], "tensor([1.])"),
        ([1.0, 2.5], "tensor([1.0000, 2.5000])"),
        ([1000.0, 1.0], "tensor([1000.,    1.])"),
        ([1001.0, 1.0], "tensor([1.0010e+03, 1.0000e+00])"),
        ([1e8], "tensor([100000000.])"),
        ([1.00000008e8], "tensor([1.0000e+08])"),
        ([1e-5], "tensor([1.0000e-05])"),
        ([NAN, INF, -INF], "tensor([nan, inf, -inf])"),
        ([NAN, 1.5, -2.0], "tensor([    nan,  1.5000, -2.0000])"),
        ([-0.0, 1.5], "tensor([-0.0000, 1.5000])"),
        ([[1.0, -2.0], [3.0, 4.0]], "tensor([[ 1., -2.],\n        [ 3.,  4.]])"),
        (2.5, "tensor(2.5000)"),
        ([], "tensor([])"),
    ],
)
def test_recorded_float32_texts(values: Any, text: str) -> None:
    assert tensor_repr(np.array(values, dtype=np.float32)) == text


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.array([True, False]), "tensor([ True, False])"),
        (np.array(True), "tensor(True)"),
        (np.array([1, -20]), "tensor([  1, -20])"),
        (np.array([1, 1], dtype=np.int32), "tensor([1, 1], dtype=torch.int32)"),
        (np.array([60000, 1], dtype=np.float16), "tensor([6.0000e+04, 1.0000e+00], dtype=torch.float16)"),
        (np.array([0.1, 100]).astype(BFLOAT16), "tensor([  0.1001, 100.0000], dtype=torch.bfloat16)"),
        (np.array([1 + 2j, -10 - 3.5j], dtype=np.complex64), "tensor([  1.+2.0000j, -10.-3.5000j])"),
        (np.array(complex(-0.0, -0.0)), "tensor(-0.-0.j, dtype=torch.complex128)"),
        (np.zeros((0, 3), dtype=np.int64), "tensor([], size=(0, 3), dtype=torch.int64)"),
        (np.zeros((3, 0), dtype=np.float32), "tensor([], size=(3, 0))"),
        (np.zeros(0, dtype=np.complex64), "tensor([], dtype=torch.complex64)"),
        (np.arange(1001), "tensor([   0,    1,    2,  ...,  998,  999, 1000])"),
        (
            np.array([2**64 - 1, 2], dtype=np.uint64),
            "tensor([18446744073709551615,                    2], dtype=torch.uint64)",
        ),
        (
            np.zeros((11, 101), dtype=np.float32),
            "tensor([[0., 0., 0.,  ..., 0., 0., 0.],\n"
            "        [0., 0., 0.,  ..., 0., 0., 0.],\n"
            "        [0., 0., 0.,  ..., 0., 0., 0.],\n"
            "        ...,\n"
            "        [0., 0., 0.,  ..., 0., 0., 0.],\n"
            "        [0., 0., 0.,  ..., 0., 0., 0.],\n"
            "        [0., 0., 0.,  ..., 0., 0., 0.]])",
        ),
        (
            np.full(25, 7, dtype=np.int32),
            "tensor([7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,\n"
            "        7], dtype=torch.int32)",
        ),
        (
            np.full(18, 7, dtype=np.int32),
            "tensor([7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7],\n       dtype=torch.int32)",
        ),
        (np.full((2, 1, 1, 2), 1), "tensor([[[[1, 1]]],\n\n\n        [[[1, 1]]]])"),
    ],
)
def test_recorded_texts_of_other_dtypes(array: NDArray[Any], text: str) -> None:
    assert tensor_repr(array) == text


def test_body_is_indented_by_the_column_given() -> None:
    assert format_array(np.eye(2), 3) == "[[1., 0.],\n    [0., 1.]]"


def test_suffixes_come_in_the_order_of_the_reference() -> None:
    text = tensor_repr(
        np.zeros((0, 2)), device_text="cuda:0", requires_grad=True, extra_suffixes=["tangent=tensor([])"]
    )
    assert text == (
        "tensor([], device='cuda:0', size=(0, 2), dtype=torch.float64,\n       requires_grad=True, tangent=tensor([]))"
    )


def test_grad_fn_hides_requires_grad() -> None:
    text = tensor_repr(np.array([2], np.float32), requires_grad=True, grad_fn_name="MulBackward0")
    assert text == "tensor([2.], grad_fn=<MulBackward0>)"


def test_parameter_has_a_heading() -> None:
    text = tensor_repr(np.array([1, 1], np.float32), requires_grad=True, is_parameter=True)
    assert text == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"


def test_another_dtype_namespace_follows_the_same_rules() -> None:
    def text(array: NDArray[Any]) -> str:
        name = f"retrograd.{array.dtype.name}"
        return tensor_repr(array, dtype_text=name, default_float_text="retrograd.float64")

    assert text(np.ones(1)) == "tensor([1.])"
    assert text(np.ones(1, np.int64)) == "tensor([1])"
    assert text(np.ones(1, np.float32)) == "tensor([1.], dtype=retrograd.float32)"


def test_huge_arrays_are_cut_before_they_are_converted(monkeypatch: pytest.MonkeyPatch) -> None:
    converted: list[int] = []
    original = _printing._exact_numbers

    def watched(array: NDArray[Any]) -> NDArray[Any]:
        converted.append(array.size)
        return original(array)

    monkeypatch.setattr(_printing, "_exact_numbers", watched)
    tensor_repr(np.broadcast_to(np.float32(1), (10**6, 10**6)))
    assert converted == [36]


def test_format_writes_scalars_as_python_numbers() -> None:
    def never() -> str:
        raise AssertionError

    assert scalar_format(np.array(1.5, np.float32), ".3f", otherwise=never) == "1.500"
    assert scalar_format(np.array(1.1, BFLOAT16), "", otherwise=never) == "1.1015625"
    assert scalar_format(np.array(3), "5d", otherwise=never) == "    3"


def test_format_prints_anything_else_in_full() -> None:
    assert scalar_format(np.ones(1), "", otherwise=lambda: "whole") == "whole"
    assert scalar_format(np.array(1.0), "", otherwise=lambda: "whole", is_plain_tensor=False) == "whole"
    with pytest.raises(TypeError, match=r"^unsupported format string passed to Tensor.__format__$"):
        scalar_format(np.ones(1), ".3f", otherwise=lambda: "whole")


def test_profiles_leave_sci_mode_to_its_own_argument() -> None:
    set_printoptions(profile="short", linewidth=60, sci_mode=True)
    assert get_printoptions() == DEFAULTS | {
        "precision": 2,
        "edgeitems": 2,
        "linewidth": 60,
        "sci_mode": True,
    }
    set_printoptions(profile="full")
    assert get_printoptions() == DEFAULTS | {"threshold": INF}


def test_setting_any_option_puts_sci_mode_back_to_automatic() -> None:
    set_printoptions(sci_mode=True)
    set_printoptions(precision=2)
    assert get_printoptions() == DEFAULTS | {"precision": 2}


def test_unknown_profiles_change_nothing() -> None:
    set_printoptions(profile="FULL")
    assert get_printoptions() == DEFAULTS


def test_options_read_are_a_copy() -> None:
    get_printoptions()["precision"] = 9
    assert get_printoptions() == DEFAULTS


def test_context_manager_restores_options_after_an_error() -> None:
    set_printoptions(edgeitems=5, sci_mode=False)
    before = get_printoptions()
    seen: list[dict[str, Any]] = []

    def fail_inside() -> None:
        with printoptions(precision=2):
            seen.append(get_printoptions())
            raise KeyError

    with pytest.raises(KeyError):
        fail_inside()
    assert seen == [DEFAULTS | {"precision": 2, "edgeitems": 5}]
    assert get_printoptions() == before


def test_unknown_options_are_refused() -> None:
    message = r"set_printoptions\(\) got an unexpected keyword argument 'bogus'"
    with pytest.raises(TypeError, match=message), printoptions(bogus=3):
        pass
    assert get_printoptions() == DEFAULTS


def test_an_impossible_precision_fails_on_printing() -> None:
    with printoptions(precision=-1), pytest.raises(ValueError, match="Format specifier missing precision"):
        tensor_repr(np.array([1.5]))
