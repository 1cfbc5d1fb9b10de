"""Old names of torch.func: the package functorch, torch._functorch, torch._vmap_internals."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import pytest

import retrograd
from tests.oracle import described, outcome, whole


def functorch_of(t: Any) -> Any:
    name = "functorch" if t is not retrograd else "retrograd._functorch.deprecated"
    return importlib.import_module(name)


def linear(t: Any, *, bias: float = 0.5) -> Any:
    layer = t.nn.Linear(2, 2)
    with t.no_grad():
        layer.weight.copy_(t.tensor([[1.0, 2.0], [3.0, 4.0]]))
        layer.bias.fill_(bias)
    return layer


def a_function_of_parameters(t: Any) -> Any:
    layer = linear(t)
    function, params = functorch_of(t).make_functional(layer)
    out = function(params, t.ones(1, 2))
    out.sum().backward()
    return out, [p.grad for p in params], layer.weight.grad, params[0] is layer.weight, type(function).__name__


def without_tracking(t: Any) -> Any:
    _, params = functorch_of(t).make_functional(linear(t), disable_autograd_tracking=True)
    return [p.requires_grad for p in params]


def shared_parameters(t: Any) -> Any:
    model = t.nn.Sequential(linear(t), linear(t))
    model[1].weight = model[0].weight
    function, params = functorch_of(t).make_functional(model)
    function(params, t.ones(1, 2)).sum().backward()
    return len(params), [p.grad for p in params]


def buffers(t: Any) -> Any:
    layer = t.nn.BatchNorm1d(2)
    function, params, state = functorch_of(t).make_functional_with_buffers(layer)
    out = function(params, state, t.tensor([[1.0, 2.0], [3.0, 5.0]]))
    return out.detach().round(decimals=3), state[2], layer.num_batches_tracked, len(params), len(state)


def buffers_refused(t: Any) -> Any:
    return functorch_of(t).make_functional(t.nn.BatchNorm1d(2))


def ensemble(t: Any) -> Any:
    function, params, state = functorch_of(t).combine_state_for_ensemble([linear(t), linear(t, bias=1.5)])
    out = functorch_of(t).vmap(function, in_dims=(0, 0, None))(params, state, t.ones(1, 2))
    return out, [p.requires_grad for p in params], state


def ensemble_of_nothing(t: Any) -> Any:
    return functorch_of(t).combine_state_for_ensemble([])


def ensemble_of_kinds(t: Any) -> Any:
    return functorch_of(t).combine_state_for_ensemble([linear(t), t.nn.BatchNorm1d(2)])


def ensemble_of_modes(t: Any) -> Any:
    return functorch_of(t).combine_state_for_ensemble([linear(t), linear(t).eval()])


def transforms(t: Any) -> Any:
    f, x = functorch_of(t), t.tensor([1.0, 2.0])
    total = lambda x: (x**3).sum()  # noqa: E731
    return [
        f.grad(total)(x),
        f.grad_and_value(total)(x),
        f.hessian(total)(x),
        f.jacrev(total)(x),
        f.jacfwd(total)(x),
        f.vjp(total, x)[1](t.tensor(1.0)),
        f.jvp(total, (x,), (x,)),
        f.vmap(lambda y: y * 2)(x),
    ]


PROGRAMS = [
    a_function_of_parameters, without_tracking, shared_parameters, buffers, buffers_refused, ensemble,
    ensemble_of_nothing, ensemble_of_kinds, ensemble_of_modes, transforms,
]  # fmt: skip


def answered(program: Any, t: Any) -> Any:
    return outcome(lambda: described(program(t)), words=whole, kinds=RuntimeError)


@pytest.mark.oracle
@pytest.mark.parametrize("program", PROGRAMS)
def test_like_torch(program: Any) -> None:
    assert answered(program, retrograd) == answered(program, pytest.importorskip("torch"))


def said(t: Any, name: str, *args: Any) -> Any:
    with pytest.warns(FutureWarning, match="integrated functorch") as caught:
        getattr(functorch_of(t), name)(*args)
    return str(next(one.message for one in caught if one.category is FutureWarning))


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["vmap", "grad", "hessian", "make_functional", "make_functional_with_buffers"])
def test_warnings_are_torchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = ((linear(t),) if name.startswith("make") else (abs,) for t in (retrograd, torch))
    assert said(retrograd, name, *ours) == said(torch, name, *theirs)


def test_import_functorch_under_the_alias() -> None:
    before = sys.modules.get("functorch")
    with retrograd.as_torch():
        found = importlib.import_module("functorch")
        assert found is functorch_of(retrograd)
        assert found.__version__ == "2.13.0"
    assert sys.modules.get("functorch") is before


def test_modules_behind_torch_func() -> None:
    base = importlib.import_module("retrograd._functorch.apis")
    assert base.vmap is retrograd.func.vmap
    for module, names in {
        "apis": "grad grad_and_value vmap",
        "eager_transforms": "hessian jacfwd jacrev jvp linearize vjp functionalize debug_unwrap",
        "functional_call": "functional_call stack_module_state",
        "batch_norm_replacement": "replace_all_batch_norm_modules_",
    }.items():
        found = importlib.import_module(f"retrograd._functorch.{module}")
        for name in names.split():
            assert getattr(found, name) is getattr(retrograd.func, name)
    x = retrograd.ones(3)
    run = importlib.import_module("retrograd._functorch.vmap").vmap_impl
    assert run(lambda a: a.sum(), 0, 0, "error", None, x.reshape(3, 1)).tolist() == [1.0, 1.0, 1.0]


def test_vmap_of_old() -> None:
    old = importlib.import_module("retrograd._vmap_internals")
    with pytest.warns(FutureWarning, match=r"Please use `torch.vmap` instead"):
        assert old.vmap(retrograd.sin)(retrograd.zeros(2)).tolist() == [0.0, 0.0]
    assert old._vmap(lambda x: None, allow_none_pass_through=True)(retrograd.zeros(2)) is None
