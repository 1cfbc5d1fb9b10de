"""torch.library: Library, define, impl, rules for batches and modes, opcheck."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

import retrograd
import retrograd as rg
from retrograd import Tensor, library
from retrograd.utils._python_dispatch import TorchDispatchMode

ops: Any = retrograd.ops


@pytest.fixture
def lib() -> Iterator[Any]:
    made = library.Library("library_tests", "DEF")
    made.define("scaled(Tensor x, int n=2) -> Tensor")
    yield made
    made._destroy()


def test_an_operation_is_defined_by_its_schema_and_computed_by_kernels(lib: Any) -> None:
    with pytest.raises(NotImplementedError, match="Could not run 'library_tests::scaled'"):
        ops.library_tests.scaled(rg.ones(2))
    lib.impl("scaled", lambda x, n=2: x * n, "CPU")
    assert ops.library_tests.scaled(rg.ones(2)).tolist() == [2.0, 2.0]
    assert ops.library_tests.scaled.default(rg.ones(2), 3).tolist() == [3.0, 3.0]
    assert str(ops.library_tests.scaled.default._schema) == "library_tests::scaled(Tensor x, int n=2) -> Tensor"
    with pytest.raises(NotImplementedError, match="no fake impl or Meta kernel"):
        ops.library_tests.scaled(rg.ones(2, device="meta"))
    lib._register_fake("scaled", lambda x, n=2: rg.empty_like(x))
    assert ops.library_tests.scaled(rg.ones(2, device="meta")).shape == (2,)


def test_what_is_wrong_is_refused(lib: Any) -> None:
    with pytest.raises(RuntimeError, match="same name and overload name multiple times"):
        lib.define("scaled(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="Only a single TORCH_LIBRARY"):
        library.Library("library_tests", "DEF")
    with pytest.raises(ValueError, match="Unsupported kind: OTHER"):
        library.Library("library_tests", "OTHER")
    with pytest.raises(NotImplementedError, match="cannot replace a kernel of aten::sin"):
        library.Library("aten", "IMPL").impl("sin", lambda x: x, "CPU")
    with pytest.raises(RuntimeError, match="Expected a value of type 'Tensor' for argument 'x'"):
        ops.library_tests.scaled("a")
    with pytest.raises(ValueError, match='"namespace::name"'):
        library.define("scaled", "(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match="no Triton kernels"):
        library.triton_op("library_tests::triton", mutates_args=())


@pytest.fixture
def sine() -> Any:
    @library.custom_op("library_tests::sine", mutates_args=())
    def sine(x: Tensor, n: int = 1) -> Tensor:
        return x.sin() * n

    return sine


def test_batches_go_to_their_rule_or_run_one_by_one(sine: Any) -> None:
    x = rg.tensor([[0.5, 1.0], [1.5, 2.0]])
    assert rg.func.vmap(sine)(x).tolist() == x.sin().tolist()
    seen: list[Any] = []

    def rule(info: Any, in_dims: Any, x: Any, n: int) -> Any:
        seen.append((info.batch_size, in_dims))
        return x.sin() * n, in_dims[0]

    library.register_vmap("library_tests::sine", rule)
    assert rg.func.vmap(sine)(x).tolist() == x.sin().tolist()
    assert seen == [(2, (0, None))]


def test_modes_see_operations_of_programs_and_may_have_a_rule_for_them(sine: Any) -> None:
    seen: list[str] = []

    class Seeing(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    x = rg.tensor([0.5], requires_grad=True)
    sine.register_autograd(lambda ctx, grad: (grad * 7, None))
    with Seeing():
        sine(x).backward()
    assert seen[0] == "library_tests.sine.default"
    assert x.grad.tolist() == [7.0]
    sine.register_torch_dispatch(Seeing, lambda mode, func, types, args, kwargs: args[0].neg())
    with Seeing():
        assert sine(rg.ones(1)).tolist() == [-1.0]


def test_opcheck_says_what_does_not_agree(sine: Any) -> None:
    with pytest.raises(Exception, match="test_faketensor failed with There was no fake impl"):
        library.opcheck(sine, (rg.ones(2),))
    sine.register_fake(lambda x, n=1: rg.empty_like(x))
    assert set(library.opcheck(sine, (rg.ones(2),)).values()) == {"SUCCESS"}
    found = library.opcheck(sine, (rg.ones(2, requires_grad=True),), raise_exception=False)
    assert "no autograd formula was registered" in str(found["test_aot_dispatch_dynamic"])

    @library.custom_op("library_tests::writes", mutates_args=())
    def writes(x: Tensor) -> Tensor:
        x.add_(1)
        return x.clone()

    with pytest.raises(Exception, match="Argument x is not defined as mutable but was mutated"):
        library.opcheck(writes, (rg.ones(2),))


def test_a_result_that_is_an_argument_is_refused() -> None:
    @library.custom_op("library_tests::same", mutates_args=())
    def same(x: Tensor) -> Tensor:
        return x

    with pytest.raises(RuntimeError, match="must not also be an input to this custom operator"):
        same(rg.ones(1))


def functions(tensor: Any) -> list[Any]:
    def one(x: tensor, y: float, z: int = 3, *, b: bool = False, s: str = "a") -> tensor: ...

    def two(x: tensor, o: tensor | None, many: Sequence[int], t: list[tensor]) -> tuple[tensor, tensor]: ...

    def three(x: tensor, n: int | None = None, f: Sequence[float] | None = None) -> list[tensor]: ...

    for function in (one, two, three):
        names = {"tensor": tensor, "Sequence": Sequence}
        function.__annotations__ = {k: eval(v, names) for k, v in function.__annotations__.items()}
    return [one, two, three]


@pytest.mark.oracle
def test_schemas_are_inferred_as_torch_does() -> None:
    torch = pytest.importorskip("torch")
    for own, other in zip(functions(Tensor), functions(torch.Tensor), strict=True):
        for mutated in ((), {"x"}, "unknown"):
            found = library.infer_schema(own, mutates_args=mutated)
            assert found == torch.library.infer_schema(other, mutates_args=mutated)


def test_a_kernel_for_autocast_runs_while_autocast_is_on(lib: Any) -> None:
    keys = rg._C.DispatchKeySet(rg._C.DispatchKey.AutocastCPU)

    def cast(x: Tensor, n: int = 2) -> Any:
        with rg._C._ExcludeDispatchKeyGuard(keys):
            return ops.library_tests.scaled(x.float(), n).bfloat16()

    lib.impl("scaled", lambda x, n=2: x * n, "CPU")
    lib.impl("scaled", cast, "AutocastCPU")
    lib.impl("scaled", cast, "AutocastCUDA")
    half = rg.ones(2, dtype=rg.float16)
    with rg.autocast("cpu"):
        assert ops.library_tests.scaled(half).dtype == rg.bfloat16
        assert ops.library_tests.scaled.default(half).dtype == rg.bfloat16
    assert ops.library_tests.scaled(half).dtype == rg.float16


def test_register_autocast_casts_above_the_derivative(sine: Any) -> None:
    library.register_autograd("library_tests::sine", lambda ctx, grad: (grad * 3, None))
    library.register_autocast("library_tests::sine", "cpu", rg.bfloat16)
    x = rg.ones(2, requires_grad=True)
    with rg.autocast("cpu"):
        made = sine(x)
        assert made.dtype == rg.bfloat16
        assert sine(x.double()).dtype == rg.float64
    made.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [3.0, 3.0]
    assert made.grad_fn.next_functions[0][0].name() == "ToCopyBackward0"
    assert sine(x).dtype == rg.float32
