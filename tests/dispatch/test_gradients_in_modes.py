"""What autograd does inside of a mode: the values, the gradients and the refusals that it has without one, which are torch's."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import retrograd
from retrograd.utils._pytree import tree_map_only
from tests.dispatch.programs import drawn
from tests.oracle import first_line, outcome

PROGRAMS: dict[str, Callable[[Any], Any]] = {}
OF_ONE: dict[str, Callable[[Any, Any], Any]] = {}


def of_one(run: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Add a program of one leaf of shape (3, 4)."""
    OF_ONE[run.__name__] = run
    PROGRAMS[run.__name__] = lambda t: run(t, drawn(t, 3, 4))
    return run


def numbers(value: Any) -> Any:
    """Return what a program returned, as arrays and plain values."""
    if isinstance(value, (list, tuple)):
        return [numbers(one) for one in value]
    if hasattr(value, "detach"):
        value = getattr(value, "held", value).detach()
        return np.asarray(value.double().numpy() if value.is_floating_point() else value.numpy())
    return value


def beginning(error: BaseException) -> str:
    """Return the first words of an error: other nodes may be named after them."""
    return first_line(error).partition(". ")[0][:90]


def numbers_or_error(run: Callable[[], Any]) -> Any:
    return outcome(lambda: numbers(run()), words=beginning, ignore_warnings=False)


def in_mode(library: Any, run: Callable[[], Any]) -> Any:
    with import_module(f"{library.__name__}.utils._python_dispatch").BaseTorchDispatchMode():
        return run()


def agree(one: Any, other: Any, tolerance: float = 1e-3) -> None:
    if isinstance(one, list) and isinstance(other, list):
        assert len(one) == len(other)
        for first, second in zip(one, other, strict=True):
            agree(first, second, tolerance)
    elif isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        np.testing.assert_allclose(other, one, rtol=tolerance, atol=tolerance / 50)
    else:
        assert other == one


# ---- writes ----
@of_one
def a_number_into_a_row(t: Any, x: Any) -> Any:
    y = x.clone()
    y[0] = 1.0
    (y**2).sum().backward()
    return x.grad


@of_one
def a_mask(t: Any, x: Any) -> Any:
    y = x.clone()
    y[x > 0.1] = 0.0
    (y**2).sum().backward()
    return x.grad


@of_one
def a_row_of_the_tensor_itself(t: Any, x: Any) -> Any:
    y = x * 2
    y[0] = y[1] * x[2]
    y[:, 1:] *= x[:, :3]
    return y, t.autograd.grad((y**2).sum(), x)[0]


@of_one
def a_view_read_after_its_base_was_written(t: Any, x: Any) -> Any:
    y = x * 2
    v = y[1]
    y.mul_(x)
    return v, t.autograd.grad((v**2).sum(), x)[0]


@of_one
def a_base_read_after_its_view_was_written(t: Any, x: Any) -> Any:
    y = x * 2
    y.t()[1].mul_(3).add_(x[:, 0])
    return y, t.autograd.grad((y**3).sum(), x)[0]


@of_one
def a_diagonal(t: Any, x: Any) -> Any:
    y = x * 1
    y.diagonal().mul_(5)
    return t.autograd.grad((y**2).sum(), x)[0]


@of_one
def windows_that_overlap(t: Any, x: Any) -> Any:
    return t.autograd.grad((x.view(-1).as_strided((5, 3), (2, 1), 1) ** 2).sum(), x)[0]


@of_one
def second_derivatives_through_writes(t: Any, x: Any) -> Any:
    y = x.clone()
    y[0] = y[1] * y[2]
    (g,) = t.autograd.grad((y**3).sum(), x, create_graph=True)
    return g, t.autograd.grad((g * g).sum(), x)[0]


@of_one
def second_derivatives_of_results_written_into_views(t: Any, x: Any) -> Any:
    y = x * x
    y[0].exp_()
    y[1:].t()[0].sigmoid_().mul_(x[0, :2])
    (g,) = t.autograd.grad((y * x).sum(), x, create_graph=True)
    return y, g, t.autograd.grad((g * g).sum(), x)[0]


@of_one
def a_linear_operation_before_a_write(t: Any, x: Any) -> Any:
    y = x * 1
    z = y.roll(1, 0)
    y.mul_(2)
    return t.autograd.grad((z * x).sum(), x)[0]


@of_one
def a_saved_value_overwritten_by_itself(t: Any, x: Any) -> Any:
    y = x.clone()
    y.mul_(y)
    y.sum().backward()


@of_one
def a_saved_value_overwritten(t: Any, x: Any) -> Any:
    y = x.lgamma()
    z = y.erfinv()
    y.add_(1)
    z.sum().backward()


@of_one
def a_write_into_a_leaf(t: Any, x: Any) -> Any:
    x.mul_(2)


@of_one
def a_write_into_a_view_of_a_leaf(t: Any, x: Any) -> Any:
    x[0].mul_(2)


@of_one
def a_write_into_one_of_several_views(t: Any, x: Any) -> Any:
    a, _ = (x * 1).split(2, 1)
    a.mul_(2)


@of_one
def a_write_into_a_view_of_one_of_several(t: Any, x: Any) -> Any:
    a, _ = (x * 1).split(2, 1)
    a[0].mul_(2)


@of_one
def a_write_into_a_view_made_without_gradients(t: Any, x: Any) -> Any:
    y = x * 1
    with t.no_grad():
        v = y[0]
    v.mul_(2)


@of_one
def writes_without_gradients(t: Any, x: Any) -> Any:
    with t.no_grad():
        x[0] = 5.0
        x[1].mul_(2)
    (x**2).sum().backward()
    return x, x.grad


@of_one
def third_derivatives(t: Any, x: Any) -> Any:
    y = x.lgamma()
    for _ in range(3):
        (y,) = t.autograd.grad(y.sum(), x, create_graph=True)
    return y


# ---- the graph ----
@of_one
def a_graph_that_was_freed(t: Any, x: Any) -> Any:
    y = (x * x).sum()
    y.backward()
    y.backward()


@of_one
def a_graph_that_saved_nothing(t: Any, x: Any) -> Any:
    y = (x + 1).sum()
    y.backward()
    y.backward()
    return x.grad


@of_one
def a_graph_that_was_kept(t: Any, x: Any) -> Any:
    y = x.lgamma().sum()
    y.backward(retain_graph=True)
    y.backward()
    return x.grad


@of_one
def gradients_that_are_not_needed(t: Any, x: Any) -> Any:
    w = drawn(t, 4, 2)
    y = (x.detach() @ w).erfinv()
    return t.autograd.grad(y.sum(), [x, w], allow_unused=True)[1]


@of_one
def a_leaf_that_is_not_reached(t: Any, x: Any) -> Any:
    return t.autograd.grad((x * 2).sum(), [drawn(t, 2)])


@of_one
def hooks(t: Any, x: Any) -> Any:
    seen: list[Any] = []
    y = x.lgamma()
    y.register_hook(lambda g: g * 2)
    y.retain_grad()
    z = y * x
    z.grad_fn.register_hook(lambda inputs, outputs: seen.append(len(inputs)))
    z.grad_fn.register_prehook(lambda grads: (grads[0] * 3,))
    x.register_hook(seen.append)
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad.clone()))
    z.sum().backward()
    return x.grad, y.grad, seen


@of_one
def hooks_of_saved_values(t: Any, x: Any) -> Any:
    with t.autograd.graph.saved_tensors_hooks(lambda one: one.numpy(force=True), lambda one: t.tensor(one)):
        y = (x.lgamma() * x).exp().softmax(1)
        y[0] = 1.0
        z = y @ x.t()
    z.sum().backward()
    return x.grad


@of_one
def values_saved_on_the_cpu(t: Any, x: Any) -> Any:
    with t.autograd.graph.save_on_cpu():
        y = (x.lgamma() * x).sigmoid()
    y.sum().backward()
    return x.grad


def checkpointed(reentrant: bool) -> Callable[[Any, Any], Any]:
    def run(t: Any, x: Any) -> Any:
        t.manual_seed(0)
        module = t.nn.Sequential(
            t.nn.Linear(4, 5), t.nn.GELU(), t.nn.Dropout(0.5), t.nn.LayerNorm(5), t.nn.Linear(5, 4)
        )
        checkpoint = import_module(f"{t.__name__}.utils.checkpoint").checkpoint
        checkpoint(lambda x: module(x).lgamma() * x, x, use_reentrant=reentrant).sum().backward()
        return x.grad, [one.grad for one in module.parameters()]

    run.__name__ = f"checkpoint {'with' if reentrant else 'without'} reentrance"
    return run


of_one(checkpointed(True))
of_one(checkpointed(False))


@of_one
def not_a_number_found_by_anomaly_mode(t: Any, x: Any) -> Any:
    with t.autograd.detect_anomaly():
        (x * 0).sqrt().sum().mul(0).backward()


@of_one
def anomaly_mode_without_one(t: Any, x: Any) -> Any:
    with t.autograd.detect_anomaly():
        (x.lgamma() * x).sum().backward()
    return x.grad


@of_one
def a_function_of_a_program(t: Any, x: Any) -> Any:
    class Cube(t.autograd.Function):  # type: ignore[name-defined,misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return 3 * grad * ctx.saved_tensors[0] ** 2

    y = Cube.apply(x * 2)
    (g,) = t.autograd.grad(y.sum(), x, create_graph=True)
    return y, g, t.autograd.grad(g.sum(), x)[0]


@of_one
def a_function_that_writes(t: Any, x: Any) -> Any:
    class Doubled(t.autograd.Function):  # type: ignore[name-defined,misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return 2 * grad

    y = x * 1
    Doubled.apply(y)
    return y, t.autograd.grad((y**2).sum(), x)[0]


@of_one
def nothing_recorded(t: Any, x: Any) -> Any:
    with t.no_grad():
        y = (x * 2).lgamma()
    with t.inference_mode():
        z = x * 2
    return (
        y,
        y.requires_grad,
        z,
        z.requires_grad,
        t.normal(x, 1.0).requires_grad,
        t.bernoulli(x.sigmoid()).requires_grad,
    )


# ---- random numbers ----
def drawing(name: str, make: Callable[[Any, Any], Any]) -> None:
    """Add a program whose backward must be for the numbers that its forward drew."""

    def run(t: Any) -> Any:
        x = drawn(t, 3, 2, 4)
        t.manual_seed(3)
        y = make(t, x)
        (g,) = t.autograd.grad((y * y).sum(), x, create_graph=name != "recurrent layers")
        after = t.rand(2)
        return y, g, after

    PROGRAMS[name] = run


drawing("recurrent layers", lambda t, x: t.nn.LSTM(4, 3, num_layers=2, dropout=0.5)(x)[0])
drawing("gamma", lambda t, x: t.distributions.Gamma(x.exp(), 1.0).rsample())
drawing("dirichlet", lambda t, x: t.distributions.Dirichlet(x.exp()).rsample())
drawing("dropout by name", lambda t, x: t.native_dropout(x, 0.5, True)[0])
drawing("leaky units", lambda t, x: t.nn.functional.rrelu(x, training=True))
drawing("fractional windows", lambda t, x: t.nn.functional.fractional_max_pool2d(x, 1, output_ratio=0.7))
drawing("gumbel", lambda t, x: t.nn.functional.gumbel_softmax(x))
drawing("a generator", lambda t, x: t.bernoulli(x.sigmoid(), generator=t.Generator().manual_seed(5)) * x)


# ---- transforms ----
def written(t: Any) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        y = x.clone()
        y[0] = y[1] * y[2]
        return (y**3).sum() + x.lgamma().sum()

    return f


@of_one
def transforms(t: Any, x: Any) -> Any:
    x = x.detach() + 2
    f, func = written(t), t.func
    return [
        func.grad(f)(x),
        func.jvp(f, (x,), (x,)),
        func.hessian(f)(x[:, 0]),
        func.jacrev(func.jacrev(f))(x[:, 0]),
        func.vmap(func.grad(f))(x.t()),
        func.vjp(lambda x: x.erfinv(), x / 5)[1](x)[0],
        func.vmap(lambda row: row.lgamma() * row)(x),
        func.grad(lambda x: func.grad(f)(x).pow(2).sum())(x),
    ]


@of_one
def hessians_of_autograd(t: Any, x: Any) -> Any:
    return t.autograd.functional.hessian(written(t), x.detach()[:, 0] + 2)


# ---- autocast ----
def under_autocast(name: str, make: Callable[[Any], Any], *shape: int) -> None:
    def run(t: Any) -> Any:
        t.manual_seed(0)
        module, x = make(t), drawn(t, *shape)
        with t.autocast("cpu", dtype=t.bfloat16):
            y = module(x)
        (y.float() ** 2).sum().backward()
        grads = [one.grad for one in module.parameters()]
        return str(y.dtype).rpartition(".")[2], [str(one.dtype).rpartition(".")[2] for one in grads], y, x.grad, grads

    PROGRAMS[f"autocast, {name}"] = run


under_autocast("batch normalisation", lambda t: t.nn.Sequential(t.nn.Linear(4, 5), t.nn.BatchNorm1d(5)), 6, 4)
under_autocast("group normalisation", lambda t: t.nn.Sequential(t.nn.Conv2d(3, 4, 3), t.nn.GroupNorm(2, 4)), 2, 3, 5, 5)
under_autocast("layer normalisation", lambda t: t.nn.Sequential(t.nn.Linear(4, 5), t.nn.LayerNorm(5)), 6, 4)


def tolerance(name: str) -> float:
    """Return how far results may be apart: bfloat16 has eight bits, and sums are made in another order."""
    return 0.05 if "autocast" in name else 1e-3


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_happens_in_a_mode_is_what_happens_without_one(name: str) -> None:
    run = PROGRAMS[name]
    plain, seen = (
        numbers_or_error(lambda: run(retrograd)),
        numbers_or_error(lambda: in_mode(retrograd, lambda: run(retrograd))),
    )
    agree(plain, seen, tolerance(name))


@pytest.mark.oracle
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_happens_in_a_mode_is_what_happens_in_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    run = PROGRAMS[name]
    agree(
        numbers_or_error(lambda: run(torch)),
        numbers_or_error(lambda: in_mode(retrograd, lambda: run(retrograd))),
        tolerance(name),
    )


class Wrapped(retrograd.Tensor):
    """A tensor around another one."""

    held: Any

    @staticmethod
    def __new__(cls: Any, inner: Any, requires_grad: bool = False) -> Any:
        made = retrograd.Tensor._make_wrapper_subclass(
            cls, inner.shape, inner.stride(), inner.storage_offset(), dtype=inner.dtype, requires_grad=requires_grad
        )
        made.held = inner
        return made

    __torch_function__ = retrograd._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args, kwargs = tree_map_only(Wrapped, lambda one: one.held, (args, kwargs or {}))
        return tree_map_only(retrograd.Tensor, Wrapped, func(*args, **kwargs))


NOT_WRAPPED = (
    "transforms",
    "hooks_of_saved_values",
)  # transforms take no wrappers, and these have no numbers for NumPy


@pytest.mark.parametrize("name", [name for name in OF_ONE if name not in NOT_WRAPPED])
def test_what_happens_to_a_wrapped_tensor_is_what_happens_to_a_plain_one(name: str) -> None:
    leaf = drawn(retrograd, 3, 4).detach()
    wrapped = numbers_or_error(lambda: OF_ONE[name](retrograd, Wrapped(leaf, True)))
    agree(numbers_or_error(lambda: PROGRAMS[name](retrograd)), wrapped)


def test_a_backward_that_needs_the_numbers_that_were_drawn_is_not_recorded() -> None:
    def gradient(x: Any) -> Any:
        x = x.detach().requires_grad_()
        return retrograd.autograd.grad(retrograd._standard_gamma(x).sum(), x)[0]

    make_fx = import_module("retrograd.fx.experimental.proxy_tensor").make_fx
    with pytest.raises(NotImplementedError, match="numbers that it drew"):
        make_fx(gradient)(retrograd.ones(3))


@pytest.mark.parametrize("wraps", [False, True])
def test_a_written_tensor_does_not_keep_itself_alive(wraps: bool) -> None:
    leaf = drawn(retrograd, 3, 4)
    leaf = Wrapped(leaf.detach(), True) if wraps else leaf
    gc.disable()
    try:
        with import_module("retrograd.utils._python_dispatch").BaseTorchDispatchMode() if not wraps else nullcontext():
            y = leaf.clone()
            y[0] = 1.0
            y.mul_(leaf)
            kept = weakref.ref(y)
            del y
        assert kept() is None
    finally:
        gc.enable()
