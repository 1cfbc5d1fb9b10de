"""Sizes that change: what a program computes from one is in the graph, or the program is refused, but never fixed in silence."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd
from tests.oracle import Raised, first_line, outcome

EXPRESSIONS: dict[str, Callable[[Any, Any, int], Any]] = {
    # Each is of the package, a tensor with n elements, and n.
    "full of 1.0 / n": lambda torch, x, n: torch.full((n,), 1.0 / n),
    "1 / n": lambda torch, x, n: x * (1 / n),
    "x / n": lambda torch, x, n: x / n,
    "n ** 0.5": lambda torch, x, n: x * (n**0.5),
    "n ** -0.5": lambda torch, x, n: x * (n**-0.5),
    "2 ** n": lambda torch, x, n: x * 2**n,
    "2.0 ** n": lambda torch, x, n: x * 2.0**n,
    "-n": lambda torch, x, n: x * -n,
    "n % 3": lambda torch, x, n: x * (n % 3),
    "7.5 % n": lambda torch, x, n: x * (7.5 % n),
    "n / 2": lambda torch, x, n: x * (n / 2),
    "divmod": lambda torch, x, n: x * divmod(n, 4)[1] + divmod(20, n)[0],
    "full of n": lambda torch, x, n: torch.full((2,), n),
    "clamp": lambda torch, x, n: x.clamp(max=n - 2),
    "full_like": lambda torch, x, n: torch.full_like(x, n),
    "masked_fill": lambda torch, x, n: x.masked_fill(x > 0, n),
    "numel": lambda torch, x, n: x * x.numel() + torch.numel(x) + x.nelement(),
    "nbytes": lambda torch, x, n: x * x.nbytes,
    "linspace": lambda torch, x, n: torch.linspace(0, 1, n),
    "arange down": lambda torch, x, n: torch.arange(n - 1, -1, -1) * x,
    "pairs": lambda torch, x, n: x.sum() * (n * (n - 1) / 2),
    "eye": lambda torch, x, n: torch.eye(n) @ x,
    "fill_": lambda torch, x, n: torch.zeros(n).fill_(n) + x,
    "alpha": lambda torch, x, n: torch.add(x, x, alpha=n),
    "where": lambda torch, x, n: torch.where(torch.arange(n) < n / 2, x, -x),
    "math.sqrt": lambda torch, x, n: x * math.sqrt(n),
    "math.sqrt of a fraction": lambda torch, x, n: x * math.sqrt(n / 2),
    "n - x": lambda torch, x, n: n - x,
    "x ** n": lambda torch, x, n: x**n,
    "abs": lambda torch, x, n: x * abs(3 - n),
    "round": lambda torch, x, n: x * round(n / 2),
    "round to digits": lambda torch, x, n: x * round(n / 7, 1),
    "math.ceil": lambda torch, x, n: x * math.ceil(n / 2),
    "math.floor": lambda torch, x, n: x * math.floor(n / 2),
    "math.trunc": lambda torch, x, n: x * math.trunc(n / 2),
    "n == 5": lambda torch, x, n: x * (n == 5),
    "n > 7": lambda torch, x, n: x + (n > 7),
    "not": lambda torch, x, n: x + (not n > 7),
    "min": lambda torch, x, n: x * min(n, 100),
    "max": lambda torch, x, n: x * max(n, 7),
    "pad": lambda torch, x, n: torch.nn.functional.pad(x, (0, n)),
    "expand": lambda torch, x, n: x.view(1, -1).expand(n, -1),
    "randn": lambda torch, x, n: torch.randn(n).mul(0) + n,
    "tensor of n": lambda torch, x, n: torch.tensor(n) + x,
    "tensor of a list": lambda torch, x, n: torch.tensor([n, 1.0]) * 2,
    "tensor of a size": lambda torch, x, n: torch.tensor(x.shape) * 2,
    "as_tensor": lambda torch, x, n: x * torch.as_tensor(n),
    "asarray": lambda torch, x, n: x * torch.asarray(n),
    "scalar_tensor": lambda torch, x, n: x * torch.scalar_tensor(n),
    "new_tensor": lambda torch, x, n: x * x.new_tensor([n]),
    "a tensor of the program's": lambda torch, x, n: torch.Tensor([1.0, 2.0]) * n,
    "Tensor of a list": lambda torch, x, n: torch.Tensor([n]) * x,
    "roll": lambda torch, x, n: x.roll(n // 2),
    "last": lambda torch, x, n: x[n - 1] * x,
    "narrow": lambda torch, x, n: x.narrow(0, 1, n - 2),
    "len": lambda torch, x, n: x * len(x),
    "len of the shape": lambda torch, x, n: x * len(x.shape),
    "repeat_interleave": lambda torch, x, n: x.repeat_interleave(n),
    "one_hot": lambda torch, x, n: torch.nn.functional.one_hot(torch.arange(n), n).float() @ x,
    "index_select": lambda torch, x, n: x.index_select(0, torch.arange(0, n, 2)),
    "iterating": lambda torch, x, n: torch.cat([v[None] for v in x]),
    "range": lambda torch, x, n: torch.stack([x[i] for i in range(n)]),
    "repeated list": lambda torch, x, n: torch.cat([x[:2]] * n),
    "unbind": lambda torch, x, n: torch.stack(x.unbind(0)),
    "split": lambda torch, x, n: torch.stack([each.sum() for each in x.split(2)]),
    "chunk": lambda torch, x, n: torch.stack([each.sum() for each in x.chunk(4)]),
    "tensor_split": lambda torch, x, n: torch.stack([each.sum() for each in x.tensor_split(2)]),
    "stride": lambda torch, x, n: x * x.expand(2, n).contiguous().stride(0),
    "storage": lambda torch, x, n: x * x.untyped_storage().nbytes(),
    "strides": lambda torch, x, n: x * x.expand(2, n).contiguous().stride()[0],
    "storage_offset": lambda torch, x, n: x * x[n - 1].storage_offset(),
    "is_same_size": lambda torch, x, n: x * x.is_same_size(torch.ones(9)),
    "NumPy's number with a tensor": lambda torch, x, n: x * np.float64(2.0) + np.float32(1.0),
    "tile": lambda torch, x, n: x.tile((n,)),
    "tril": lambda torch, x, n: torch.ones(n, n).tril().sum() * x,
    "avg_pool1d": lambda torch, x, n: torch.nn.functional.avg_pool1d(x[None], n),
    "unfold": lambda torch, x, n: x.unfold(0, n - 1, 1).sum(0),
    "numel of the size": lambda torch, x, n: torch.empty(x.shape).copy_(x) * x.size().numel(),
    "math.prod": lambda torch, x, n: x * math.prod(x.shape),
    "math.gcd": lambda torch, x, n: x * math.gcd(n, 12),
    "NumPy's number": lambda torch, x, n: x * (np.float64(2.0) * n),
    "np.sqrt": lambda torch, x, n: x * float(np.sqrt(n)),
    "complex": lambda torch, x, n: x * (n * 1j),
    "float": lambda torch, x, n: x * float(n),
    "int": lambda torch, x, n: x * int(n),
    "int of a fraction": lambda torch, x, n: x * int(n / 2),
    "text": lambda torch, x, n: x * int(f"{n}"),
    "bits": lambda torch, x, n: x * (n << 1) + (n & 3),
    "key": lambda torch, x, n: x * {6: 1.0}.get(n, 2.0),
    "sym_float": lambda torch, x, n: x * torch.sym_float(n),
    "sym_max": lambda torch, x, n: x * torch.sym_max(n, 7),
    "branch": lambda torch, x, n: x + 1 if n > 7 else x - 1,
    "even": lambda torch, x, n: x + 1 if n % 2 == 0 else x - 1,
}


def module_of(torch: Any, function: Any) -> Any:
    class Program(torch.nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, x: Any) -> Any:
            return function(torch, x, x.shape[0])

    return Program()


def exported_and_called(torch: Any, function: Any) -> Any:
    """Return what a program gives that was exported for 6 elements and runs on 9, and what it gives without; or who refuses."""
    export = importlib.import_module(f"{torch.__name__}.export")
    module = module_of(torch, function)
    sizes = ({0: export.Dim("b")},)
    exported = outcome(
        lambda: export.export(module, (torch.arange(1.0, 7.0),), dynamic_shapes=sizes).module(), ignore_warnings=False
    )
    if isinstance(exported, Raised):
        return exported
    return outcome(
        lambda: (exported(torch.arange(1.0, 10.0)), module(torch.arange(1.0, 10.0))),
        kinds=(AssertionError, RuntimeError),
        ignore_warnings=False,
    )


REFUSALS = ("GuardOnDataDependentSymNode", "ValueError", "NotImplementedError")


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_what_is_computed_from_a_size_is_right_or_refused(name: str) -> None:
    found = exported_and_called(retrograd, EXPRESSIONS[name])
    if isinstance(found, tuple):
        ours, wanted = found
        assert ours.dtype == wanted.dtype
        assert retrograd.equal(ours, wanted)
    else:
        assert found.kind in ("UserError", "AssertionError", "RuntimeError", *REFUSALS)


READS: dict[str, Callable[[Any, Any], Any]] = {
    "equal": lambda torch, x: x + 1 if torch.equal(x, torch.ones(4)) else x - 1,
    "equal as a method": lambda torch, x: x + 1 if x.equal(torch.ones(4)) else x - 1,
    "allclose": lambda torch, x: x + 1 if torch.allclose(x, torch.ones(4)) else x - 1,
    "allclose as a method": lambda torch, x: x + 1 if x.allclose(torch.ones(4)) else x - 1,
    "is_nonzero": lambda torch, x: x + 1 if torch.is_nonzero(x[0]) else x - 1,
    "any": lambda torch, x: x + 1 if bool(x.any()) else x - 1,
    "item": lambda torch, x: x + 1 if x[0].item() > 0 else x - 1,
    "tolist": lambda torch, x: x + x.tolist()[0],
    "np.asarray": lambda torch, x: x + float(np.asarray(x)[0]),
    "numpy": lambda torch, x: x + float(x.numpy()[0]),
    "list": lambda torch, x: x + 1 if 1.0 in x else x - 1,
    "tensor of elements": lambda torch, x: torch.tensor([x[0], 2.0]),
    "Tensor of elements": lambda torch, x: torch.Tensor([x[0], 2.0]),
    "sorted": lambda torch, x: sorted(x)[0],
    "text": lambda torch, x: x + float(f"{x.sum():.2f}"),
}


@pytest.mark.parametrize("name", READS)
def test_a_program_that_reads_values_is_refused(name: str) -> None:
    class Program(retrograd.nn.Module):
        def forward(self, x: Any) -> Any:
            return READS[name](retrograd, x)

    refusals = (retrograd.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode, NotImplementedError, ValueError)
    with pytest.raises(refusals):
        retrograd.export.export(Program(), (retrograd.ones(4),))


def copies(torch: Any) -> Any:
    def program(x: Any) -> Any:
        one = torch.tensor(x)
        two = torch.tensor(x, dtype=torch.int64)
        three = torch.as_tensor(x, dtype=torch.float64)
        one.add_(1)
        return one, two, three, torch.asarray(x) * 2

    class Program(torch.nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, x: Any) -> Any:
            return program(x)

    export = importlib.import_module(f"{torch.__name__}.export")
    made = [
        export.export(Program(), (torch.ones(2),)).module(),
        torch.jit.trace(program, torch.ones(2), check_trace=False),
    ]
    found = []
    for each in made:
        given = torch.zeros(2)
        found.append([(part.tolist(), str(part.dtype).split(".")[-1]) for part in each(given)] + given.tolist())
    return found


@pytest.mark.filterwarnings("ignore")
def test_a_copy_of_a_tensor_is_in_the_graph() -> None:
    assert (
        copies(retrograd)
        == [[([1.0, 1.0], "float32"), ([0, 0], "int64"), ([0.0, 0.0], "float64"), ([0.0, 0.0], "float32"), 0.0, 0.0]]
        * 2
    )


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
def test_a_copy_of_a_tensor_is_what_it_is_in_torch() -> None:
    assert copies(retrograd) == copies(pytest.importorskip("torch"))


def sums(torch: Any, of_x: Any, of_y: Any, sizes: tuple[int, int], *calls: tuple[int, int]) -> Any:
    class Program(torch.nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, x: Any, y: Any) -> Any:
            return x.sum() + 10 * y.sum()

    export = importlib.import_module(f"{torch.__name__}.export")
    root = export.Dim("b", min=2, max=20)
    said = {"x": {0: of_x(root)}, "y": {0: of_y(root)}}
    program = export.export(Program(), tuple(map(torch.ones, sizes)), dynamic_shapes=said).module()
    refusals = {"words": first_line, "kinds": AssertionError, "ignore_warnings": False}
    return [outcome(lambda call=call: program(*map(torch.ones, call)).item(), **refusals) for call in calls]


DIMS_OF_TWO: dict[str, Any] = {
    "the same": (lambda b: b, lambda b: b, (3, 3), (4, 4), (4, 5)),
    "one more": (lambda b: b, lambda b: b + 1, (3, 4), (4, 5), (4, 4)),
    "one less": (lambda b: b, lambda b: b - 1, (4, 3), (5, 4), (4, 4)),
    "double first": (lambda b: 2 * b, lambda b: b, (6, 3), (8, 4), (8, 5), (7, 3)),
    "double last": (lambda b: b, lambda b: 2 * b, (3, 6), (4, 8), (5, 8), (3, 7)),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", DIMS_OF_TWO)
def test_sizes_by_one_dim_are_checked_against_each_other(name: str) -> None:
    given = DIMS_OF_TWO[name]
    assert sums(retrograd, *given) == sums(pytest.importorskip("torch"), *given)


def test_sizes_that_are_different_multiples_are_checked() -> None:
    found = sums(retrograd, lambda b: 2 * b, lambda b: 3 * b, (6, 9), (8, 12), (8, 13))
    assert found[0] == 128.0
    assert found[1].words.startswith("Guard failed: ")


def test_a_size_beyond_the_limits_is_named() -> None:
    class Program(retrograd.nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 2

    said = {"x": {0: retrograd.export.Dim("b", min=3, max=5)}}
    program = retrograd.export.export(Program(), (retrograd.ones(4),), dynamic_shapes=said).module()
    with pytest.raises(AssertionError, match=r"^Guard failed: x\.size\(\)\[0\] <= 5"):
        program(retrograd.ones(6))
    with pytest.raises(AssertionError, match=r"^Guard failed: x\.size\(\)\[0\] >= 3"):
        program(retrograd.ones(2))


def test_one_name_has_one_definition() -> None:
    dim = retrograd.export.Dim
    with pytest.raises(retrograd._dynamo.exc.UserError, match="Found different definitions"):
        sums(retrograd, lambda b: dim("b", min=3, max=5), lambda b: b, (3, 3))
