"""How tensors lie in memory inside transforms, and what can be viewed: as in torch."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd
from tests.oracle import Raised, answer

# the ways into a function of a 3 x 4 matrix
TRANSFORMS = {
    "vmap": "torch.vmap(f)(torch.arange(24.0).view(2, 3, 4))",
    "vmap over a middle axis": "torch.vmap(f, in_dims=1)(torch.arange(24.0).view(3, 2, 4))",
    "vmap over the last axis": "torch.vmap(f, in_dims=2)(torch.arange(24.0).view(3, 4, 2))",
    "vmap of an expanded batch": "torch.vmap(f)(torch.arange(12.0).view(3, 4).expand(2, 3, 4))",
    "nested vmap": "torch.vmap(torch.vmap(f))(torch.ones(2, 2, 3, 4))",
    "jvp": "torch.func.jvp(f, (torch.arange(12.0).view(3, 4),), (torch.ones(3, 4),))",
    "jvp with a transposed tangent": "torch.func.jvp(f, (torch.ones(3, 4),), (torch.arange(12.0).view(4, 3).t(),))",
    "jvp at a transposed point": "torch.func.jvp(f, (torch.arange(12.0).view(4, 3).t(),), (torch.ones(3, 4),))",
    "jacfwd": "torch.func.jacfwd(f)(torch.arange(12.0).view(3, 4))",
    "grad": "torch.func.grad(lambda x: f(x).sum())(torch.arange(12.0).view(3, 4))",
    "vmap of grad": "torch.vmap(torch.func.grad(lambda x: f(x).sum()))(torch.ones(2, 3, 4))",
    "hessian": "torch.func.hessian(lambda x: f(x).sum())(torch.ones(3, 4)).shape",
}
ODD = (
    "vmap over a middle axis",
    "vmap over the last axis",
    "vmap of an expanded batch",
)  # we may copy where torch does not
LAYOUTS = {
    "itself": "x",
    "a transpose": "x.t()",
    "a contiguous transpose": "x.t().contiguous()",
    "a clone": "x.t().clone()",
    "a contiguous clone": "x.t().clone(memory_format=torch.contiguous_format)",
    "a clone of an expanded row": "x[:1].expand(3, 4).clone()",
    "a product": "x.t() * 2",
    "a slice": "x[:, ::2]",
    "a contiguous slice": "x[:, ::2].contiguous()",
    "a diagonal": "x.diagonal()",
    "rows": "x.t()[torch.tensor([0, 2])]",
    "selected rows": "x.t().index_select(0, torch.tensor([0, 2]))",
    "a stack": "torch.stack([x.t(), x.t()])",
    "a stack behind": "torch.stack([x.t(), x.t()], -1)",
    "a joined matrix": "torch.cat([x.t(), x.t()], 1)",
    "a matrix product": "x.t() @ x",
    "a cumulative sum": "x.t().cumsum(0)",
    "a softmax": "x.t().softmax(0)",
    "a sum over an expanded axis": "x.t()[:, :, None].expand(4, 3, 2).sum(2)",
    "a triangle": "x.t().tril()",
    "windows": "x.unfold(0, 2, 1)",
    "a reshaped transpose": "x.t().reshape(2, 6)",
    "a layer norm": "torch.nn.functional.layer_norm(x.t(), (3,))",
}
VIEWED = [
    "x.t().contiguous().view(-1)",
    "(x * 2).t().contiguous().view(12)",
    "(x.t() * 2).contiguous().view(2, 6)",
    "x.t().clone(memory_format=torch.contiguous_format).view(-1)",
    "torch.stack([x.t(), x.t()]).view(-1)",
    "torch.cat([x.t(), x.t()], 1).view(-1)",
    "x.t()[None].expand(2, 4, 3).contiguous().view(-1)",
    "x.unfold(0, 2, 1).contiguous().view(-1)",
    "x.view(-1)",
    "(-x).view(2, 6)",
    "x.t().view(-1)",
    "x.t().reshape(-1)",
    "x.t().flatten()",
    "x.t().ravel()",
    "x.unflatten(1, (2, 2))",
    "torch.nn.functional.layer_norm(x.t(), (3,)).view(-1)",
    "torch.nn.functional.gelu(x).view(-1)",
    "x.double().view(-1)",
    "x[:2].clone().view(-1)",
]


def inside(library: Any, expression: str, transform: str) -> Any:
    """Return strides and contiguity of what an expression of `x` makes inside a transform."""
    seen: list[Any] = []

    def f(x: Any) -> Any:
        made = eval(expression, {"torch": library, "x": x})
        seen.append((made.stride(), made.is_contiguous()))
        return made

    eval(transform, {"torch": library, "f": f})
    return seen[0]


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("name", LAYOUTS)
def test_strides_are_those_of_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    for where, transform in TRANSFORMS.items():
        ours, theirs = (inside(library, LAYOUTS[name], transform) for library in (retrograd, torch))
        if theirs[1]:  # what is contiguous in torch must be here: programs view it
            assert ours == theirs, where
        elif where not in ODD:
            assert ours[0] == theirs[0] or ours[1], where


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("expression", VIEWED)
def test_what_can_be_viewed_in_torch_can_be_here(expression: str) -> None:
    torch = pytest.importorskip("torch")
    for where, transform in TRANSFORMS.items():
        program = transform.replace("(f", f"(lambda x: {expression}").replace("f(x)", f"({expression})")
        theirs, ours = answer(torch, program), answer(retrograd, program)
        if isinstance(theirs, Raised) and theirs.kind == "RuntimeError":
            assert ours == theirs or where in ODD, where
        else:
            for shape, numbers, expected_shape, expected in _pairs(ours, theirs):
                assert shape == expected_shape, where
                assert numbers == pytest.approx(expected, abs=1e-4), where


def _pairs(ours: Any, theirs: Any) -> Any:
    """Yield shapes and numbers: dtypes, strides and nodes of what leaves a transform are not compared here."""
    if isinstance(theirs, list):
        for one, other in zip(ours, theirs, strict=True):
            yield from _pairs(one, other)
    elif isinstance(theirs, str):
        yield ours, 0, theirs, 0
    else:
        yield ours[1], _flat(eval(ours[3])), theirs[1], _flat(eval(theirs[3]))


def _flat(value: Any) -> list[float]:
    return [one for part in value for one in _flat(part)] if isinstance(value, list) else [value]


@pytest.mark.oracle
@pytest.mark.parametrize(
    "program",
    [
        "torch.vmap(lambda x: x.contiguous(memory_format=torch.channels_last))(torch.ones(2, 3, 4, 5, 5))",
        "torch.vmap(lambda x: x.is_contiguous(memory_format=torch.channels_last))(torch.ones(2, 3, 4, 5, 5))",
        "torch.func.jvp(lambda x: x.contiguous(memory_format=torch.channels_last), *2 * ((torch.ones(3, 4, 5, 5),),))",
        "torch.func.jvp(lambda x: x.to(memory_format=torch.channels_last), *2 * ((torch.ones(3, 4, 5, 5),),))",
        "torch.func.jvp(lambda x: x.t().clone(), *2 * ((torch.ones(2, 3),),))",
        "torch.vmap(lambda x: x.t().contiguous())(torch.ones(2, 3, 4))",
        "torch.func.jvp(lambda x: x.t().contiguous().view(torch.int32), *2 * ((torch.ones(2, 2),),))",
        "torch.vmap(lambda x: x.view(torch.int32))(torch.ones(2, 2))",
        "torch.func.jvp(lambda x: -x, (torch.ones(2, 3),), (torch.ones(3, 2).t(),))[1].view(-1)",
        "torch.func.jacfwd(torch.nn.functional.gelu)(torch.tensor(1.0)).shape",
    ],
)
def test_formats_and_results(program: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = answer(retrograd, program), answer(torch, program)
    assert ours == theirs


def _attention(torch: Any) -> Any:
    """Make nanoGPT's attention, whose heads are put together by `transpose`, `contiguous` and `view`."""
    nn = torch.nn

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.out = nn.Linear(4, 12), nn.Linear(4, 4)

        def forward(self, x: Any) -> Any:
            samples, steps, width = x.shape
            heads = [
                part.view(samples, steps, 2, width // 2).transpose(1, 2) for part in self.qkv(x).split(width, dim=2)
            ]
            weights = (heads[0] @ heads[1].transpose(-2, -1) / 2**0.5).softmax(-1)
            y = (weights @ heads[2]).transpose(1, 2).contiguous().view(samples, steps, width)
            return self.out(y)

    torch.manual_seed(0)
    return Attention().double()


@pytest.mark.oracle
def test_attention_under_every_transform() -> None:
    torch = pytest.importorskip("torch")
    found = []
    for library in (retrograd, torch):
        module, func = _attention(library), library.func
        x = library.arange(24.0, dtype=library.float64).view(2, 3, 4).sin()
        weights = {name: one.detach() for name, one in module.named_parameters()}

        def loss(weights: Any, sample: Any, module: Any = module, func: Any = func) -> Any:
            return func.functional_call(module, weights, (sample[None],)).square().sum()

        def total(x: Any, module: Any = module) -> Any:
            return module(x).square().sum()

        each = library.vmap(func.grad(loss), (None, 0))(weights, x)
        values = [library.vmap(module)(x[None]), *func.jvp(module, (x,), (x.cos(),)), func.jacfwd(total)(x)]
        values += [func.hessian(total)(x), func.jacfwd(func.jacfwd(total))(x), *each.values()]
        found.append([one.detach().tolist() for one in values])
    for ours, theirs in zip(*found, strict=True):
        assert _flat(ours) == pytest.approx(_flat(theirs), rel=1e-9, abs=1e-12)
