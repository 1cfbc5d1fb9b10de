"""Check the dtypes that only store, and those that are names, against torch: tables, casts, operations, files."""

from __future__ import annotations

import io
import itertools
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import retrograd
from retrograd import _dtypes as rd
from tests.oracle import first_line, said

STORED = [each.name for each in rd.STORED_DTYPES]
EVERY = [each.name for each in (*rd.IN_MEMORY, *rd.NAMES_ONLY)]
FLOAT8 = [name for name in STORED if name.startswith("float8")]


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def told(library: Any, call: Callable[[], Any]) -> str:
    """Return what a call gave, or the first line of how it failed, as text that both libraries share."""
    return said(lambda: shown(library, call()), words=lambda error: first_line(error).lstrip())


def shown(library: Any, value: Any) -> str:
    if isinstance(value, library.Tensor):
        wide = value
        if value.dtype.is_complex or value.dtype.is_floating_point:
            wide = value.to(library.complex128 if value.dtype.is_complex else library.float64)
        return f"{value.dtype} {list(value.shape)} {wide.tolist()}"
    if isinstance(value, (tuple, list)):
        return "; ".join(shown(library, one) for one in value)
    return str(value)


# ---- tables -----------------------------------------------------------------------------------------------


@pytest.mark.oracle
def test_every_dtype_of_torch_is_here(torch: Any) -> None:
    theirs = {name: str(value) for name, value in vars(torch).items() if isinstance(value, torch.dtype)}
    ours = {name: str(getattr(retrograd, name, None)) for name in theirs}
    assert ours == theirs


@pytest.mark.oracle
@pytest.mark.parametrize("name", EVERY)
def test_attributes(torch: Any, name: str) -> None:
    for question in (
        "is_signed is_complex is_floating_point itemsize abbr to_real to_complex".split()  # noqa: SIM905
    ):

        def ask(library: Any, question: str = question) -> Any:
            answer = getattr(getattr(library, name), question)
            return answer() if callable(answer) else answer

        assert told(retrograd, lambda: ask(retrograd)) == told(torch, lambda: ask(torch)), question


@pytest.mark.oracle
@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("limit", ["finfo", "iinfo"])
def test_limits(torch: Any, name: str, limit: str) -> None:
    def ask(library: Any) -> Any:
        found = getattr(library, limit)(getattr(library, name))
        facts = ["bits", "min", "max", "dtype"] + ["eps", "resolution", "tiny", "smallest_normal"] * (limit == "finfo")
        return [repr(found), *(getattr(found, fact) for fact in facts)]

    expected = told(torch, lambda: ask(torch))
    if name == "float4_e2m1fn_x2" and limit == "finfo":
        expected = (
            "NotImplementedError: \"lowest\" not implemented for 'Float4_e2m1fn_x2'"  # torch's repr fails otherwise
        )
    assert told(retrograd, lambda: ask(retrograd)) == expected


@pytest.mark.oracle
@pytest.mark.parametrize("first", EVERY)
def test_promotion_and_casting(torch: Any, first: str) -> None:
    def ask(library: Any, function: str, pair: tuple[str, str]) -> Any:
        return told(library, lambda: getattr(library, function)(*[getattr(library, name) for name in pair]))

    for second in EVERY:
        assert ask(retrograd, "can_cast", (first, second)) == ask(torch, "can_cast", (first, second)), second
        expected = ask(torch, "promote_types", (first, second))
        if "INTERNAL ASSERT FAILED" in expected:
            names = [getattr(rd, name, None) or rd.dtype_named(name) for name in (first, second)]
            expected = (
                f"RuntimeError: Promotion from {names[0]._scalar_name} and {names[1]._scalar_name} is unsupported."
            )
        assert ask(retrograd, "promote_types", (first, second)) == expected, second


@pytest.mark.oracle
@pytest.mark.parametrize("name", STORED)
def test_result_types(torch: Any, name: str) -> None:
    def ask(library: Any, value: Any) -> Any:
        tensor = library.zeros(2, dtype=getattr(library, name))
        other = value if not isinstance(value, str) else library.zeros((), dtype=getattr(library, value))
        return told(library, lambda: library.result_type(tensor, other))

    for value in (True, 1, 1.5, 1j, "bool", "int64", "float32", "complex64", name):
        assert ask(retrograd, value) == ask(torch, value), value


@pytest.mark.parametrize("name", [each.name for each in rd.NAMES_ONLY])
def test_names_without_tensors_say_so(name: str) -> None:
    with pytest.raises(NotImplementedError, match=f"torch.{name} is a name only"):
        retrograd.zeros(2, dtype=getattr(retrograd, name))
    with pytest.raises(NotImplementedError, match="name only"):
        retrograd.ones(2).to(getattr(retrograd, name))


# ---- casts ------------------------------------------------------------------------------------------------


def bytes_of(tensor: Any, library: Any) -> list[int]:
    return tensor.view(library.uint8).tolist()  # type: ignore[no-any-return]


@pytest.mark.oracle
@pytest.mark.parametrize("name", FLOAT8)
def test_float32_rounds_to_float8_as_torch_does(torch: Any, name: str) -> None:
    bits = np.arange(0, 1 << 32, 40503, dtype=np.uint64).astype(np.uint32)
    edges = np.array(
        [0, -0.0, np.inf, -np.inf, np.nan, 448, 464, 480, 57344, 61440, 240, 248, 2.0**-127, 2.0**-128], np.float32
    )
    values = np.concatenate([bits.view(np.float32), edges, -edges])
    ours = retrograd.from_numpy(values).to(getattr(retrograd, name)).view(retrograd.uint8).numpy()
    theirs = torch.from_numpy(values).to(getattr(torch, name)).view(torch.uint8).numpy()
    assert values[ours != theirs].tolist() == []


@pytest.mark.oracle
@pytest.mark.parametrize("name", FLOAT8)
@pytest.mark.parametrize("target", ["float16", "float32", "float64", "complex64"])
def test_all_values_of_float8(torch: Any, name: str, target: str) -> None:
    memory = np.arange(256, dtype=np.uint8)

    def read(library: Any) -> Any:
        return library.from_numpy(memory).view(getattr(library, name)).to(getattr(library, target)).numpy()

    np.testing.assert_array_equal(read(retrograd), read(torch))


@pytest.mark.oracle
@pytest.mark.parametrize("source", [*STORED, "float32", "float64", "bfloat16", "int64", "int16", "uint8", "complex64"])
@pytest.mark.parametrize("target", STORED)
def test_casts_between_dtypes(torch: Any, source: str, target: str) -> None:
    numbers = [0, 1, 2, 3.7, 100, 127, 65535, 65536, 1e6, 0.1, 1 / 3]
    if rd.dtype_named(source).is_signed:
        numbers += [-1, -5.5, -70000]
    values = torch.tensor(numbers, dtype=torch.float64).to(getattr(torch, source))
    if (
        source in FLOAT8
    ):  # some of which have NaN for what is too large; what integers are made of it is nobody's promise
        values = values[values.double().isfinite()]
    ours = retrograd.from_numpy(values.view(torch.uint8).numpy()).view(getattr(retrograd, source))
    expected = bytes_of(values.to(getattr(torch, target)), torch)
    assert bytes_of(ours.to(getattr(retrograd, target)), retrograd) == expected
    assert bytes_of(ours.new_zeros(len(values), dtype=getattr(retrograd, target)).copy_(ours), retrograd) == expected


# ---- operations: values where torch's CPU has them, and its refusals where it has not ---------------------

PROGRAMS = """
zeros(2, dtype=d) | ones(2, dtype=d) | full((2,), 3, dtype=d) | full((2,), 2.5, dtype=d) | tensor([1, 2], dtype=d)
tensor([1.5, 2], dtype=d) | tensor([1 + 2j, 2], dtype=d) | tensor([-1], dtype=d) | tensor([70000], dtype=d) | tensor([2**63], dtype=d)
tensor(7, dtype=d) | full((2,), 1e9, dtype=d) | zeros(2, dtype=d).fill_(1e9) | zeros(2, dtype=d).fill_(-1)
arange(4, dtype=d) | linspace(0, 1, 3, dtype=d) | eye(2, dtype=d) | randperm(3, dtype=d) | set_default_dtype(d)
zeros_like(a) | ones_like(a) | full_like(a, 1) | a.new_zeros(2) | a.new_full((2,), 1) | scalar_tensor(3, dtype=d)
a.clone() | a.contiguous() | a[0] | a[0].item() | a[i] | a[m] | a[1:] | a.view(2, 2) | a.reshape(2, 2).t().contiguous()
cat([a, b]) | stack([a, b]) | a.repeat(2) | a.expand(2, 4) | a.roll(1) | where(m, a, b) | a.unfold(0, 2, 1) | a.chunk(2)
a.flip(0) | a.unsqueeze(0) | a.view(2, 2).unbind() | repeat_interleave(a, 2) | nn.functional.pad(a, (1, 1))
a.clone().fill_(1) | a.clone().zero_() | a.clone().copy_(b) | ones(4).copy_(a) | a.clone().index_put_((i,), b[:2])
a.masked_fill(m, 1) | a.clone().masked_scatter_(m, b) | take(a, i)
a == b | a != b | a < b | a >= b | a == 1 | a < 1 | a == ones(4) | a == ones(4, dtype=int64)
a + b | a - b | a * b | a / b | a // b | a % b | a ** b | a + 1 | a - 1 | 1 - a | a ** 2 | a * ones(4) | a + ones(4)
a + ones(4, dtype=int64) | a + 1j | -a | +a | abs(a) | a & b | a | b | a << 1
exp(a) if a.is_floating_point() or a.is_complex() else sqrt(a) | log(ones_like(a)) | relu(a) | sign(a) | sgn(a) | floor(a) | frac(a)
isnan(a) | isinf(a) | isfinite(a) | logical_not(a) | clamp(a, 0, 1) | maximum(a, b) | real(a) | imag(a) | conj(a) | view_as_real(a)
a.sum() | a.prod() | a.mean() | a.max() | a.max(0) | a.amax() | a.argmax() | a.any() | a.all() | a.cumsum(0) | a.cumprod(0)
a.sort() | a.argsort() | a.topk(2) if not a.is_complex() else a.view(2, 2) | a.unique() if a.dtype == uint16 else a.size() | a.nonzero()
equal(a, b) if not a.is_complex() else a.size() | a @ b | a.view(2, 2) @ b.view(2, 2) | outer(a, b) | a.view(2, 2).diagonal() | a.diag()
a.tolist() | a.type() | a.element_size() | a.is_signed() | a.is_complex() | a.is_floating_point() | bool(a[1]) | complex(a[0])
a.numpy().tolist() | repr(a) | repr(a[1]) | repr(a.view(2, 2)) | a.half() | a.bool() | from_dlpack(a) | a.untyped_storage().nbytes()
a.storage().dtype | a.clone().requires_grad_().requires_grad | ones(2).type('torch.UInt16Tensor') | zeros(6)[a]
"""
# E8M0 has no zero: torch prints what it keeps for it as if it had, and NumPy's printing would not.
LEFT_OUT = {
    ("float8_e8m0fnu", "repr(a)"),
    ("float8_e8m0fnu", "repr(a.view(2, 2))"),
    ("float8_e8m0fnu", "nn.functional.pad(a, (1, 1))"),
}


def program_names() -> list[str]:
    return [one.strip() for line in PROGRAMS.strip().splitlines() for one in line.split(" | ")]


@pytest.mark.oracle
@pytest.mark.parametrize("name", STORED)
def test_operations(torch: Any, name: str) -> None:
    def run(library: Any, program: str) -> str:
        d = getattr(library, name)
        scope = {"d": d, "a": library.arange(4).to(library.float32).to(d), "b": library.tensor([1.0, 1, 4, 2]).to(d)}
        scope |= {"m": library.tensor([True, False, True, False]), "i": library.tensor([2, 0])}
        names = {key: getattr(library, key) for key in compiled(program).co_names if hasattr(library, key)}
        names = {key: value for key, value in names.items() if key not in ("abs", "bool", "complex")}
        return told(library, lambda: eval(compiled(program), names | scope))

    programs = [one for one in program_names() if (name, one) not in LEFT_OUT]
    ours = {program: run(retrograd, program) for program in programs}
    theirs = {program: run(torch, program) for program in programs}
    assert {k: v for k, v in ours.items() if v != theirs[k]} == {k: v for k, v in theirs.items() if v != ours[k]}


def compiled(program: str) -> Any:
    return compile(program, "program", "eval")


@pytest.mark.oracle
@pytest.mark.parametrize("name", STORED)
def test_messages_name_the_type_of_cpp(torch: Any, name: str) -> None:
    def assigned(library: Any) -> None:
        library.zeros(2, requires_grad=True).grad = library.zeros(2, dtype=getattr(library, name))

    def filled(library: Any) -> None:
        library.ones(2).masked_fill_(library.zeros(2, dtype=getattr(library, name)), 1)

    for call in (assigned, filled):
        assert told(retrograd, partial(call, retrograd)) == told(torch, partial(call, torch))


@pytest.mark.oracle
def test_half_precision_complex_arithmetic(torch: Any) -> None:
    real = np.linspace(-3, 5, 200).astype(np.float16)

    def compute(library: Any) -> list[Any]:
        x = library.complex(library.from_numpy(real), library.from_numpy(real[::-1].copy()))
        y = x.roll(7)
        pairs = library.view_as_complex(library.from_numpy(real.reshape(100, 2)))
        results = [
            x + y,
            x * y,
            x - 0.1,
            x * 0.1,
            -x,
            abs(x),
            x.conj() * y,
            pairs,
            x.real,
            x.imag,
            x.half(),
            library.from_numpy(real) * 1j,
        ]
        return [
            (
                str(r.dtype),
                library.view_as_real(r.resolve_conj() + 0 * r if r.is_conj() else r).tolist()
                if r.is_complex()
                else r.tolist(),
            )
            for r in results
        ]

    assert compute(retrograd) == compute(torch)


def test_gradients_pass_through_a_cast() -> None:
    x = retrograd.tensor([0.1, 1.0, 3.3], requires_grad=True)
    rounded = x.to(retrograd.float8_e4m3fn)
    assert rounded.grad_fn.name() == "ToCopyBackward0"
    (rounded.float() * retrograd.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad.dtype is retrograd.float32
    assert x.grad.tolist() == [1.0, 2.0, 3.0]


def test_views_share_memory() -> None:
    for name in STORED:
        a = retrograd.tensor([1, 2, 3, 4], dtype=getattr(retrograd, name))
        a.view(2, 2)[0, 1] = 4
        a[2:].fill_(1)
        assert [complex(n) for n in a.tolist()] == [1, 4, 1, 1], name
    pairs = retrograd.view_as_real(z := retrograd.tensor([1 + 2j, 3], dtype=retrograd.complex32))
    pairs[1, 1] = 5
    z.real[0] = 7
    assert z.tolist() == [7 + 2j, 3 + 5j]


def test_wide_unsigned_integers_of_numpy_share_memory() -> None:
    memory = np.array([1, 2**40, 2**64 - 1], np.uint64)
    shared = retrograd.from_numpy(memory)
    memory[0] = 9
    assert shared.tolist() == [9, 2**40, 2**64 - 1]
    assert type(shared.numpy()) is np.ndarray
    assert retrograd.from_dlpack(memory).dtype is retrograd.uint64
    assert np.from_dlpack(shared).tolist() == memory.tolist()


# ---- files ------------------------------------------------------------------------------------------------


@pytest.mark.oracle
@pytest.mark.parametrize("name", STORED)
def test_files_pass_between_the_libraries(torch: Any, name: str) -> None:
    def made(library: Any) -> Any:
        whole = library.tensor([1, 2, 3, 4, 100, 0]).to(getattr(library, name))
        return {"whole": whole, "part": whole.view(2, 3)[:, 1:], "dtype": whole.dtype}

    for writer, reader in itertools.permutations((retrograd, torch), 2):
        file = io.BytesIO()
        writer.save(made(writer), file)
        file.seek(0)
        found, expected = reader.load(file), made(reader)
        assert found["dtype"] is expected["dtype"]
        for part in ("whole", "part"):
            assert shown(reader, found[part]) == shown(reader, expected[part])
        assert found["part"].untyped_storage().data_ptr() == found["whole"].untyped_storage().data_ptr()
