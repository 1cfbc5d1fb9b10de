"""A trace computes on other inputs what the program does, or it is refused: no result is frozen."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import retrograd
from tests.ops.infos import OPS
from tests.ops.opinfo import Op, arrays_of

torch: Any = retrograd
F: Any = retrograd.nn.functional
pytestmark = pytest.mark.filterwarnings("ignore")
# They make no public call: their rules are called directly, or they are made of parts that only torch's engine sees.
REFUSED = {"conv2d_input", "conv2d_weight", "pack_padded_sequence", "pad_packed_sequence"}


def values(result: Any) -> list[Any]:
    leaves = torch.utils._pytree.tree_leaves(result)
    return [
        one.detach().resolve_conj().resolve_neg().numpy() if isinstance(one, torch.Tensor) else one for one in leaves
    ]


def same(one: Any, other: Any) -> bool:
    pairs = zip(values(one), values(other), strict=True)
    return all(np.allclose(a, b, equal_nan=True) if isinstance(a, np.ndarray) else a == b for a, b in pairs)


def holds(function: Callable[..., Any], first: list[Any], other: list[Any], how: str = "trace") -> bool:
    """Tell whether a function that was recorded with some inputs computes the same as itself with others."""
    if how == "trace":
        recorded = torch.jit.trace(function, tuple(one.clone() for one in first), check_trace=False, strict=False)
    else:
        recorded = torch.export.export(Calling(function), tuple(one.clone() for one in first)).module()
    torch.manual_seed(0)
    wanted = function(*[one.clone() for one in other])
    torch.manual_seed(0)
    return same(recorded(*[one.clone() for one in other]), wanted)


class Calling(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def tensors(op: Op, sample: Any, row: int) -> list[Any]:
    return [torch.tensor(a) for a in arrays_of(op, sample, "int64" if "bitwise" in op.name else "float64", row)]


def test_every_operation_of_the_table() -> None:
    wrong, seen = [], 0
    for op in OPS:
        for sample in op.samples[:2]:
            if op.name.startswith("xp_") or op.name in REFUSED or not (first := tensors(op, sample, 0)):
                continue
            if not holds(
                lambda *given, op=op, sample=sample: op.function(torch, sample, given), first, tensors(op, sample, 1)
            ):
                wrong.append(f"{op.name}{sample}")
            seen += 1
    assert not wrong
    assert seen > 1700


# ---- writes in place ----
def x(number: float) -> Any:
    return torch.linspace(0.1, 0.8, 9, dtype=torch.float64).reshape(3, 3) * number


INDEX = torch.tensor([2, 0, 1])
CANDIDATES: list[Callable[[Any], tuple[Any, ...]]] = [
    lambda y: (),
    lambda y: (y * 0.5,),
    lambda y: (y,),
    lambda y: (0.5,),
    lambda y: (1,),
    lambda y: (0, 1),
    lambda y: (y, y + 1),
    lambda y: (y > 0.3, 0.25),
    lambda y: (y > 0.3, y + 1),
    lambda y: (0, INDEX, y),
    lambda y: (0, INDEX, 2.0),
    lambda y: (0, INDEX.expand(3, 3), y),
    lambda y: (0, INDEX.expand(3, 3), y, "sum"),
    lambda y: (0, INDEX, y, "prod"),
    lambda y: (y[0], y[1]),
    lambda y: (torch.outer(y, y), y),
    lambda y: (y.expand(3, 3, 3), y.expand(3, 3, 3)),
    lambda y: ((INDEX,), y),
    lambda y: (INDEX, y[0]),
    lambda y: (2, 0, 0.5),
    lambda y: ((9,), (1,)),
]
# They look at the tensor's place in the graph or its memory, not at its values; or the trace would be of another dtype or shape.
ABOUT_THE_TENSOR = {
    "requires_grad_",
    "share_memory_",
    "rename_",
    "resize_",
    "resize_as_",
    "set_",
    "data_",
    "map_",
    "map2_",
    "apply_",
}
SKIPPED_LAYOUTS = {"sparse_resize_", "sparse_resize_and_clear_", "resize_as_sparse_"}


def in_place() -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in sorted(dir(torch.Tensor)):
        if name.endswith("_") and not name.startswith("_") and name not in ABOUT_THE_TENSOR | SKIPPED_LAYOUTS:
            yield name, lambda y, *args, name=name: getattr(y, name)(*args)
    for name in ("hardtanh_", "elu_", "selu_", "threshold_", "relu_", "leaky_relu_", "celu_", "rrelu_"):
        yield f"F.{name}", getattr(F, name)
    for name in (
        "relu", "relu6", "elu", "selu", "celu", "leaky_relu", "silu", "mish", "hardswish", "hardsigmoid", "hardtanh", "rrelu", "threshold",
        "dropout", "alpha_dropout",
    ):  # fmt: skip
        yield f"F.{name}(inplace=True)", lambda y, *args, name=name: getattr(F, name)(y, *args, inplace=True)


@pytest.mark.parametrize("how", ["trace", "export"])
def test_every_write_in_place(how: str) -> None:
    wrong, tried, untried = [], 0, []
    for name, method in in_place():
        given = None
        for start in (x(1.0), torch.arange(9).reshape(3, 3), x(1.0) > 0.3, x(1.0)[0], x(1.0)[None]):
            for candidate in CANDIDATES:
                try:
                    method(start.clone(), *candidate(start))
                except Exception:
                    continue
                given = candidate
                break
            if given is not None:
                break
        if given is None:
            untried.append(name)
            continue

        def program(a: Any, method: Any = method, given: Any = given) -> Any:
            b = a.clone()
            result = method(b, *given(a))
            return b, result if isinstance(result, torch.Tensor) else b + 0

        other = start.flip(-1) if start.dtype != torch.float64 else start * 0.9
        tried += 1
        if not holds(program, [start], [other], how):
            wrong.append(name)
    assert (wrong, untried) == ([], [])
    assert tried > 150


# ---- gradients and transforms ----
def by_engine(a: Any) -> Any:
    b = a.detach().requires_grad_()
    return torch.autograd.grad((b**3).sum(), b)[0]


def by_backward(a: Any) -> Any:
    b = a.detach().requires_grad_()
    (b**3).sum().backward()
    return b.grad


def with_graph(a: Any) -> Any:
    b = a.detach().requires_grad_()
    (first,) = torch.autograd.grad((b**3).sum(), b, create_graph=True)
    return torch.autograd.grad(first.sum(), b)[0]


def by_duals(a: Any) -> Any:
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        return forward.unpack_dual(forward.make_dual(a, torch.ones_like(a)) ** 2).tangent


SEEN: dict[str, Callable[[Any], Any]] = {
    "autograd.grad": by_engine,
    "backward": by_backward,
    "second derivative": with_graph,
    "functional.jacobian": lambda a: torch.autograd.functional.jacobian(lambda r: r**3, a),
    "functional.hessian": lambda a: torch.autograd.functional.hessian(lambda r: (r**3).sum(), a),
    "functional.vjp": lambda a: torch.autograd.functional.vjp(lambda r: r**3, a, torch.ones_like(a)),
    "functional.jvp": lambda a: torch.autograd.functional.jvp(lambda r: r**3, a, torch.ones_like(a)),
    "checkpoint": lambda a: torch.utils.checkpoint.checkpoint(lambda r: r**3, a, use_reentrant=False),
}
UNSEEN: dict[str, Callable[[Any], Any]] = {
    "vmap": lambda a: torch.func.vmap(lambda r: r * r.sum())(a),
    "vmap with a tensor from outside": lambda a: torch.func.vmap(lambda r: r * a)(torch.ones(2)),
    "grad": lambda a: torch.func.grad(lambda r: (r * r).sum())(a),
    "grad with a tensor from outside": lambda a: torch.func.grad(lambda r: (r * a).sum())(torch.ones(3, 3)),
    "vjp": lambda a: torch.func.vjp(lambda r: r * r, a)[1](torch.ones_like(a)),
    "jvp": lambda a: torch.func.jvp(lambda r: r * r, (a,), (torch.ones_like(a),)),
    "jacrev": lambda a: torch.func.jacrev(lambda r: r * r)(a),
    "jacfwd": lambda a: torch.func.jacfwd(lambda r: r * r)(a),
    "hessian": lambda a: torch.func.hessian(lambda r: (r**3).sum())(a),
    "linearize": lambda a: torch.func.linearize(lambda r: r**3, a)[1](torch.ones_like(a)),
    "duals": by_duals,
}


@pytest.mark.parametrize("how", ["trace", "export"])
@pytest.mark.parametrize("name", SEEN)
def test_gradients_inside_a_trace_are_recorded(name: str, how: str) -> None:
    assert holds(SEEN[name], [x(1.0)], [x(2.0)], how)


@pytest.mark.parametrize("how", ["trace", "export"])
@pytest.mark.parametrize("name", UNSEEN)
def test_transforms_inside_a_trace_are_refused(name: str, how: str) -> None:
    with pytest.raises(NotImplementedError, match="without an operation that the trace sees"):
        holds(UNSEEN[name], [x(1.0)], [x(2.0)], how)


# ---- numbers from sizes ----
PLACES = torch.arange(20.0, dtype=torch.float64)
OF_SIZES: dict[str, Callable[[Any, int], Any]] = {
    "1.0 / n": lambda x, n: torch.full((n,), 1.0 / n),
    "tensor": lambda x, n: torch.tensor(n) + x,
    "tensor of a list": lambda x, n: torch.tensor([n, 1.0]) * x.sum(),
    "as_tensor": lambda x, n: x * torch.as_tensor(n),
    "comparison": lambda x, n: x + (n > 7) + (n == 9) * 2,
    "a comparison of a comparison": lambda x, n: x + ((n > 7) == (n > 5)),
    "divmod": lambda x, n: x * divmod(n, 4)[1],
    "round": lambda x, n: x * round(n / 2),
    "NumPy's number": lambda x, n: x * (np.float64(2.0) * n),
    "stride": lambda x, n: x * x.expand(2, n).contiguous().stride(0),
    "copy": lambda x, n: torch.tensor(x) + 1,
    "a tensor from elsewhere": lambda x, n: INDEX * n,
    "operators on one": lambda x, n: PLACES**n + PLACES % n + n // (PLACES + 1),
    "slice of one": lambda x, n: PLACES[:n] * x,
    "element of one": lambda x, n: PLACES[n - 1] * x,
    "made like one": lambda x, n: PLACES.new_full((n,), n) + PLACES.new_zeros(n),
    "copied number": lambda x, n: x * copy.copy(n) * copy.deepcopy(n),
}


@pytest.mark.parametrize("name", OF_SIZES)
def test_numbers_from_sizes_are_those_of_the_run(name: str) -> None:
    function = OF_SIZES[name]
    assert holds(lambda x: function(x, x.shape[0]), [torch.arange(1.0, 7.0)], [torch.arange(2.0, 11.0)])


@pytest.mark.parametrize("divide", [lambda x: x.unbind(0), lambda x: x.split(2), list], ids=["unbind", "split", "list"])
def test_another_number_of_parts_is_an_error(divide: Any) -> None:
    traced = torch.jit.trace(lambda x: torch.cat([part.reshape(-1) * 2 for part in divide(x)]), torch.ones(4))
    assert traced(torch.arange(4.0)).tolist() == [0.0, 2.0, 4.0, 6.0]
    with pytest.raises(RuntimeError, match=r"Expected [42] elements in a list but found [63]"):
        traced(torch.arange(6.0))


def summed(x: Any) -> Any:
    total = torch.tensor(0.0)
    total += x.sum()
    return total


def added(x: Any) -> Any:
    return PLACES.clone().add_(x.sum())


@pytest.mark.parametrize("how", ["trace", "export"])
@pytest.mark.parametrize("program", [summed, added])
def test_every_run_begins_with_the_constants_of_the_program(program: Any, how: str) -> None:
    module = Calling(program)
    first = torch.ones(3)
    made = torch.jit.trace(module, first) if how == "trace" else torch.export.export(module, (first,)).module()
    for number in (2.0, 3.0):
        assert torch.equal(made(first * number), program(first * number))
