"""Writes inside transforms: into what a function was given, and into what it has captured."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd
from tests.oracle import Raised, answer, before_the_hint, outcome

TRANSFORMS = {
    "vmap": "torch.vmap(f)(y)",
    "vmap over another axis": "torch.vmap(f, in_dims=1)(y)",
    "nested vmap": "torch.vmap(torch.vmap(f))(y)",
    "jvp": "torch.func.jvp(f, (y,), (torch.ones(2, 2),))",
    "vmap of jvp": "torch.vmap(lambda s: torch.func.jvp(f, (s,), (torch.ones_like(s),))[0])(y)",
    "grad": "torch.func.grad(lambda a: f(a).sum())(y)",
    "vjp": "torch.func.vjp(f, y)[0]",
}
WRITES = {
    "a product": "lambda a: a.mul_(3)",
    "a product with a parameter": "lambda a: a.mul_(w)",
    "a part": "lambda a: (a.view(-1)[:1].mul_(3), a)[1]",
    "two": "lambda a: a.mul_(3).add_(a)",
    "zeros": "lambda a: a.zero_()",
    "a copy": "lambda a: a.copy_(a * 2)",
}
GIVEN = {
    "a leaf": "leaf",
    "a view of a leaf": "leaf.t()",
    "a result": "leaf * 1",
    "a view of a result": "(leaf * 1)[:]",
    "a constant": "torch.tensor([[1.0, 2.0], [3.0, 4.0]])",
}


def after(library: Any, transform: str, write: str, given: str) -> Any:
    """Return what a write leaves behind: the error, the tensor given, and gradients through it."""
    scope = {"torch": library, "leaf": library.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)}
    scope["w"] = library.tensor(5.0, requires_grad=True)
    y = scope["y"] = eval(given, scope)
    scope["f"] = eval(write, scope)
    run = outcome(eval, transform, scope, words=before_the_hint, kinds=RuntimeError, ignore_warnings=False)
    if isinstance(run, Raised):
        return run, y.tolist(), y.requires_grad, y._version
    if y.requires_grad:
        (y * library.tensor([[1.0, 10.0], [100.0, 1000.0]])).sum().backward()
    grads = [None if scope[name].grad is None else scope[name].grad.tolist() for name in ("leaf", "w")]
    return y.tolist(), y.requires_grad, grads


@pytest.mark.oracle
@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_a_write_is_one_into_what_was_given(transform: str, given: str) -> None:
    torch = pytest.importorskip("torch")
    for name, write in WRITES.items():
        ours, theirs = (after(one, TRANSFORMS[transform], write, GIVEN[given]) for one in (retrograd, torch))
        assert ours == theirs, name


def test_a_value_saved_before_is_missed() -> None:
    x = retrograd.ones(2, 2, requires_grad=True)
    y = x.exp()
    retrograd.vmap(lambda a: a.mul_(2))(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_tangent_that_is_the_point_itself() -> None:
    x = retrograd.ones(2)
    value, tangent = retrograd.func.jvp(lambda a: a.add_(1) * a, (x,), (x,))
    assert value.tolist() == [4.0, 4.0]
    assert tangent.tolist() == [4.0, 4.0]
    assert x.tolist() == [2.0, 2.0]


# ---- captured tensors ----
CAPTURED = [
    "b.add_(1)", "b.add_(x)", "b.sub_(x)", "b.mul_(2)", "b.div_(2)", "b.div_(2, rounding_mode='floor')", "b.pow_(2)",
    "b.pow_(x)", "b.copy_(x)", "b.fill_(1)", "b.fill_(x.sum())", "b.zero_()", "b.clamp_(0, 1)", "b.clamp_(x)",
    "b.clamp_min_(0)", "b.lerp_(x, 0.5)", "b.lerp_(x, x)", "b.masked_fill_(b > 0, 1)", "b.masked_fill_(b > 0, x.sum())",
    "b.eq_(1)", "b.eq_(x)", "b.remainder_(2)", "b.copysign_(x)", "b.xlogy_(2)", "b.xlogy_(x)", "b.exp_()", "b.relu_()",
    "b.round_()", "b.round_(decimals=1)", "b.addcmul_(x, x)", "b.cumsum_(0)", "b.t_()", "b.squeeze_()", "b.squeeze_(0)",
    "b.unsqueeze_(0)", "b.transpose_(0, 0)", "b.detach_()", "b.resize_(2)", "b.normal_()", "b.uniform_()", "b.random_()",
    "b.random_(5)", "b.random_(2, 5)", "b.bernoulli_()", "b.bernoulli_(b)", "b.exponential_()", "b.index_fill_(0, i, 1.0)",
    "b.index_fill_(0, i, x[0])", "b.index_add_(0, i, x)", "b.index_copy_(0, i, x)", "b.index_put_((i,), x)",
    "b.scatter_(0, i, x)", "b.scatter_(0, i, 1.0)", "b.scatter_(0, i, x, reduce='add')", "b.scatter_add_(0, i, x)",
    "b.scatter_reduce_(0, i, x, 'sum')", "b.masked_scatter_(b > 0, x)", "b.__setitem__(0, 3.0)", "b.__setitem__(0, x[0])",
    "b.__setitem__(slice(1), x[:1])", "b.__setitem__(i, x)", "b.__setitem__(b > 0, 3.0)", "b[0].fill_(1)",
    "b.view(1, 2).add_(1)", "b.detach().add_(1)", "b.data.add_(1)", "b.unbind()[0].add_(1)", "b.contiguous().add_(1)",
    "b.float().add_(1)", "b.reshape(2).add_(x)", "torch.nn.init.zeros_(b)", "torch.relu_(b)",
    "torch.nn.functional.relu(b, inplace=True)", "torch.nn.functional.leaky_relu(b, inplace=True)",
    "torch.nn.functional.dropout(b, inplace=True)", "torch.vmap(lambda a: a.add_(1))(b)", "long.add_(1)",
    "torch.nn.functional.embedding(i[:1], b.view(1, 2), max_norm=0.1)", "torch.nn.BatchNorm1d(2).train()(m)",
    "torch.func.grad(lambda z: b.add_(1).sum())(x)",
    # what is no operation in place, or no captured tensor
    "torch.sin(x.detach(), out=b)", "torch.add(x, x, out=b)", "torch._foreach_add_([b], 1)", "torch._foreach_zero_([b])",
    "b.clone().add_(x)", "b.new_zeros(2).add_(x)", "torch.zeros(2).add_(x)", "torch.tensor([1.0, 2.0]).add_(x)",
    "torch.empty_like(b).copy_(x)", "b.sort()[0].add_(1)", "torch.stack([x, x]).add_(1)", "x.detach().add_(1)",
    "x.data.add_(1)", "torch.nn.Linear(2, 2)(x)", "torch.randn(2).mul_(x)", "b.to(torch.float64).add_(1)",
    "torch.nn.functional.batch_norm(m, b, v, training=True)",
    "torch.nn.functional.instance_norm(m[None], b, v, use_input_stats=True)",
]  # fmt: skip
INSIDE = {
    "grad": "torch.func.grad(lambda x: (f(x), x.sum())[1])(torch.ones(2))",
    "jvp": "torch.func.jvp(lambda x: (f(x), x.sum())[1], (torch.ones(2),), (torch.ones(2),))",
}


def captured(library: Any, program: str, transform: str) -> Any:
    """Return the error of a write into a captured tensor, and what it leaves behind."""
    library.manual_seed(0)
    scope = {"torch": library, "b": library.tensor([0.0, 1.0]), "i": library.tensor([0, 1]), "v": library.ones(2)}
    scope |= {"m": library.tensor([[1.0, 2.0], [3.0, 5.0]])}
    b, scope["long"] = scope["b"], library.tensor([0, 1])
    scope["f"] = eval(f"lambda x: {program}", scope) if "x" not in program else None

    def f(x: Any) -> Any:
        return eval(program, {**scope, "x": x})

    scope["f"] = f
    error = answer(library, transform, **{name: one for name, one in scope.items() if name != "torch"})
    return error if isinstance(error, Raised) else None, b.tolist(), b.requires_grad, scope["long"].tolist()


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:Seeing a cuda")
@pytest.mark.parametrize("program", CAPTURED)
def test_writes_into_captured_tensors(program: str) -> None:
    torch = pytest.importorskip("torch")
    for name, transform in INSIDE.items():
        ours, theirs = (captured(library, program, transform) for library in (retrograd, torch))
        if theirs[0] is not None and theirs[0].kind == "NotImplementedError":  # torch has written before it refuses
            ours, theirs = (ours[0], *ours[2:]), (theirs[0], *theirs[2:])
        assert ours[0] == theirs[0], name
        assert ours[1] == pytest.approx(theirs[1]) if len(ours) > 3 else True, name
        assert ours[2:] == theirs[2:], name


@pytest.mark.oracle
@pytest.mark.parametrize(
    "program",
    [
        "torch.func.grad(lambda x, y: (y.add_(x) * x).sum())(x, b)",
        "torch.func.grad(lambda x, y: (y.add_(x) * x).sum())(x, y=b)",
        "torch.func.grad(lambda x, d: (d['y'][0].add_(x) * x).sum())(x, {'y': [b]})",
        "torch.func.grad(lambda x, y: (y.add_(x) * x).sum())(x, rows[1])",
        "torch.func.jacrev(lambda x, y: y.add_(x) * x)(x, b)",
        "torch.func.jacfwd(lambda x, y: y.add_(x) * x)(x, b)",
        "torch.func.hessian(lambda x, y: (y.add_(x) * x).sum())(x, b)",
        "torch.vmap(torch.func.grad(lambda x, y: (y.add_(x) * x).sum()))(x, b)",
        "torch.func.grad(lambda x, y: (y.add_(1) * x).sum())(x, leaf)",
        "torch.func.grad(lambda x, y: (y[0].add_(1) * x).sum())(x, leaf)",
        "torch.func.grad(lambda x: torch.vmap(lambda a: a.add_(1))(b).sum() * x.sum())(x)",
        "torch.func.grad(lambda x: torch.func.grad(lambda z: (b.add_(1) * z).sum())(x).sum())(x)",
    ],
)
def test_arguments_that_are_no_variables_may_be_written(program: str) -> None:
    torch = pytest.importorskip("torch")
    found = []
    for library in (retrograd, torch):
        scope = {"x": library.tensor([1.0, 2.0]), "b": library.zeros(2), "rows": library.zeros(2, 2)}
        scope["leaf"] = library.ones(2, requires_grad=True)
        result = answer(library, program, **scope)
        left = [(scope[name].tolist(), scope[name].requires_grad) for name in ("b", "rows", "leaf")]
        found.append((result if isinstance(result, Raised) else result[3], left))
    assert found[0] == found[1]


def test_an_outer_gradient_reaches_what_was_written_inside() -> None:
    weight = retrograd.tensor([1.0, 2.0], requires_grad=True)
    buffer = retrograd.zeros(2)
    retrograd.func.grad(lambda x, y: (y.add_(x * weight) * x).sum())(retrograd.tensor([3.0, 4.0]), buffer)
    buffer.sum().backward()
    assert weight.grad.tolist() == [3.0, 4.0]


@pytest.mark.oracle
def test_batch_norm_with_its_statistics_as_arguments() -> None:
    torch = pytest.importorskip("torch")
    found = []
    for library in (retrograd, torch):
        module, func = library.nn.BatchNorm1d(2), library.func
        x = library.tensor([[1.0, 2.0], [3.0, 5.0], [0.0, 1.0]])
        weights = {name: one.detach() for name, one in module.named_parameters()}
        buffers = {name: one.clone() for name, one in module.named_buffers()}

        def loss(weights: Any, buffers: Any, module: Any = module, func: Any = func, x: Any = x) -> Any:
            return func.functional_call(module, (weights, buffers), (x,)).pow(3).sum()

        grads = func.grad(loss)(weights, buffers)
        found.append([one.tolist() for one in (*grads.values(), *buffers.values())])
        statistics = library.zeros(2), library.ones(2)

        def normalised(x: Any, library: Any = library, statistics: Any = statistics) -> Any:
            return library.nn.functional.batch_norm(x, *statistics, training=True).pow(3).sum()

        found[-1] += [one(normalised)(x).tolist() for one in (func.jacrev, func.jacfwd, func.hessian)]
        found[-1] += [one.tolist() for one in statistics]
    for ours, theirs in zip(*found, strict=True):
        assert _flat(ours) == pytest.approx(_flat(theirs), abs=2e-4)


def _flat(value: Any) -> list[float]:
    return [one for part in value for one in _flat(part)] if isinstance(value, list) else [value]


def test_batch_normalisation_counts_its_batches_inside_a_transform() -> None:
    """torch's layer refuses, for the count of batches alone."""
    model = retrograd.nn.BatchNorm1d(2)
    x = retrograd.tensor([[1.0, 2.0], [3.0, 6.0]])
    found = retrograd.func.grad(lambda x: (model(x) * x).sum())(x)
    assert found.shape == x.shape
    assert model.num_batches_tracked == 1
    assert model.running_mean.allclose(retrograd.tensor([0.2, 0.4]))
