"""Modes of utils._python_dispatch: what they see, what they may answer, and what they leave alone."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import retrograd
import retrograd as rg
from retrograd.utils._python_dispatch import (
    BaseTorchDispatchMode,
    TorchDispatchMode,
    _disable_current_modes,
    _get_current_dispatch_mode,
    _get_current_dispatch_mode_stack,
)
from retrograd.utils.checkpoint import checkpoint
from tests.dispatch.programs import PROGRAMS

aten: Any = retrograd.ops.aten


class Seeing(TorchDispatchMode):
    """Takes down the operations that it sees."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(func)
        return func(*args, **(kwargs or {}))


def leaf(*values: float) -> Any:
    return rg.tensor(values, requires_grad=True)


def test_operations_are_objects_that_keys_compare_with() -> None:
    with Seeing() as mode:
        rg.ones(2) + rg.ones(2)
    assert mode.seen == [aten.ones.default, aten.ones.default, aten.add.Tensor]
    assert mode.seen[2] is aten.add.Tensor
    assert mode.seen[2].overloadpacket is aten.add
    assert (mode.seen[2].namespace, mode.seen[2].__name__, mode.seen[2].name()) == (
        "aten",
        "add.Tensor",
        "aten::add.Tensor",
    )
    assert str(aten.add.Tensor._schema) == "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    assert {aten.add.Tensor: 1}[mode.seen[2]] == 1


def test_nested_modes_see_an_operation_from_the_inside_out() -> None:
    order: list[str] = []

    class Named(TorchDispatchMode):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            order.append(self.name)
            return func(*args, **(kwargs or {}))

    x = rg.ones(2)
    with Named("outer"), Named("inner"):
        x.neg()
    assert order == ["inner", "outer"]


def test_what_a_mode_computes_itself_is_seen_by_the_modes_outside_of_it() -> None:
    class Doubling(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {})) * 2

    x = leaf(1.0, 2.0)
    with Seeing() as outer, Doubling():
        y = x.exp()
    assert outer.seen == [aten.exp.default, aten.mul.Tensor, aten.detach.default, aten.mul.Tensor]
    np.testing.assert_allclose(y.detach().numpy(), 2 * np.exp([1.0, 2.0]), rtol=1e-6)
    assert y.grad_fn.name() == "ExpBackward0"


def test_a_mode_sees_below_autograd_what_does_not_require_grad() -> None:
    results: list[bool] = []

    class Looking(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = func(*args, **(kwargs or {}))
            results.append(out.requires_grad)
            return out

    x = leaf(1.0)
    with Looking():
        y = x * 2
    assert results == [False]
    assert y.requires_grad


def test_the_stack_of_modes_can_be_asked_and_set_aside() -> None:
    assert _get_current_dispatch_mode() is None
    with Seeing() as outer, Seeing() as inner:
        assert _get_current_dispatch_mode() is inner
        assert _get_current_dispatch_mode_stack() == [outer, inner]
        with _disable_current_modes() as old:
            assert old == [outer, inner]
            rg.ones(2).neg()
        assert _get_current_dispatch_mode() is inner
    assert outer.seen == inner.seen == []
    assert _get_current_dispatch_mode() is None


def test_an_error_leaves_no_mode_behind() -> None:
    class Refusing(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise KeyboardInterrupt

    x = rg.ones(2)
    with pytest.raises(KeyboardInterrupt), Refusing():
        x.neg()
    assert _get_current_dispatch_mode() is None
    assert rg.is_grad_enabled()
    assert x.neg().tolist() == [-1.0, -1.0]


def test_a_mode_belongs_to_its_thread() -> None:
    elsewhere: list[Any] = []
    with Seeing() as mode:
        thread = threading.Thread(target=lambda: elsewhere.append(rg.ones(2).sum().item()))
        thread.start()
        thread.join()
    assert elsewhere == [2.0]
    assert mode.seen == []


def gradients(name: str, *modes: Any) -> list[Any]:
    """Run a program; return the gradients that it leaves."""
    rg.manual_seed(0)
    run = PROGRAMS[name](rg)
    found = [cell.cell_contents for cell in run.__closure__ or ()]
    leaves = [one for one in found if isinstance(one, rg.Tensor)]
    leaves += [p for one in found if isinstance(one, rg.nn.Module) for p in one.parameters()]
    for mode in modes:
        mode.__enter__()
    try:
        run()
    finally:
        for mode in modes:
            mode.__exit__(None, None, None)
    return [one.grad for one in leaves if one.is_leaf and one.grad is not None]


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_those_without_a_mode(name: str) -> None:
    plain, seen = gradients(name), gradients(name, BaseTorchDispatchMode())
    assert len(plain) == len(seen)
    for one, other in zip(plain, seen, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=2e-5, atol=2e-5)


def test_an_operation_without_a_formula_shows_its_backward_as_one() -> None:
    x = leaf(0.5, 1.5)
    with Seeing() as mode:
        x.lgamma().sum().backward()
    assert "retrograd.lgamma_vjp.default" in map(str, mode.seen)
    np.testing.assert_allclose(x.grad.numpy(), rg.tensor([0.5, 1.5]).digamma().numpy(), rtol=1e-6)


def test_a_backward_of_a_graph_recorded_before_is_seen() -> None:
    weight = rg.ones(3, 4, requires_grad=True)
    loss = rg.nn.functional.linear(rg.ones(2, 4), weight).sum()
    with Seeing() as mode:
        loss.backward()
    assert aten.mm.default in mode.seen
    assert weight.grad.tolist() == [[2.0] * 4] * 3


def test_a_graph_recorded_under_a_mode_is_differentiated_without_it() -> None:
    x = leaf(1.0, 2.0)
    with Seeing() as mode:
        y = (x.exp() * x).sum()
    count = len(mode.seen)
    (gx,) = rg.autograd.grad(y, x, create_graph=True)
    (ggx,) = rg.autograd.grad(gx.sum(), x)
    assert len(mode.seen) == count
    values = np.array([1.0, 2.0])
    np.testing.assert_allclose(gx.detach().numpy(), np.exp(values) * (1 + values), rtol=1e-6)
    np.testing.assert_allclose(ggx.numpy(), np.exp(values) * (2 + values), rtol=1e-6)


def test_writes_into_views_reach_the_base() -> None:
    x = leaf(1.0, 2.0, 3.0)
    with Seeing():
        a = x * 1
        a[1:].mul_(10)
        a.sum().backward()
    assert x.grad.tolist() == [1.0, 10.0, 10.0]


def test_a_write_into_a_leaf_is_refused_before_it_happens() -> None:
    x = leaf(1.0)
    with (
        Seeing(),
        pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"),
    ):
        x.add_(1)
    assert x.tolist() == [1.0]


def test_a_saved_value_that_was_overwritten_is_refused() -> None:
    x = leaf(1.0, 2.0)
    with Seeing():
        y = x * 1
        z = y * y
        y.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.sum().backward()


def test_nodes_show_what_they_keep_by_torchs_names() -> None:
    x = rg.rand(2, 4, requires_grad=True)
    functional = rg.nn.functional
    with BaseTorchDispatchMode():
        sigmoid, rows = x.sigmoid(), functional.layer_norm(x, (4,))
        assert sigmoid.grad_fn._saved_result.equal(sigmoid)
        assert functional.softmax(x, 1).grad_fn._saved_result.shape == (2, 4)
        assert rows.grad_fn._saved_result1.shape == (2, 1)
        assert functional.leaky_relu(x, 0.2).grad_fn._saved_negative_slope == 0.2


def test_hooks_of_saved_values_see_them() -> None:
    packed: list[Any] = []

    def pack(tensor: Any) -> Any:
        packed.append(tensor.shape)
        return tensor * 1

    x = leaf(1.0, 2.0)
    with Seeing(), rg.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        y = x * x
    y.sum().backward()
    assert packed
    assert x.grad.tolist() == [2.0, 4.0]


def test_checkpoints_run_twice_under_a_mode() -> None:
    x = leaf(1.0, 2.0)
    with Seeing() as mode:
        checkpoint(lambda x: x.exp().sin(), x, use_reentrant=False).sum().backward()
    assert mode.seen.count(aten.exp.default) == 2
    np.testing.assert_allclose(x.grad.numpy(), np.exp([1.0, 2.0]) * np.cos(np.exp([1.0, 2.0])), rtol=1e-6)


@pytest.mark.parametrize("of_forward", [False, True])
@pytest.mark.parametrize("of_second_run", [False, True])
@pytest.mark.parametrize("around_forward", [False, True])
@pytest.mark.parametrize("around_backward", [False, True])
def test_checkpoints_may_have_a_mode_in_one_run_only(
    of_forward: bool, of_second_run: bool, around_forward: bool, around_backward: bool
) -> None:
    def modes() -> Any:
        return Seeing() if of_forward else nullcontext(), Seeing() if of_second_run else nullcontext()

    layer = rg.nn.Sequential(rg.nn.Linear(2, 3), rg.nn.GELU(), rg.nn.Linear(3, 2))
    x = leaf(1.0, 2.0)
    (layer(x).exp() * x).sum().backward()
    expected = x.grad.clone()
    x.grad = None
    with Seeing() if around_forward else nullcontext():
        y = checkpoint(lambda x: layer(x).exp() * x, x, use_reentrant=False, context_fn=modes).sum()
    for _ in range(100):  # after the last mode, public functions look for none any more
        rg.ones(2).sum()
    with Seeing() if around_backward else nullcontext():
        y.backward()
    np.testing.assert_allclose(x.grad.numpy(), expected.numpy(), rtol=1e-5)


def test_tensors_without_numbers_are_seen_too() -> None:
    with Seeing() as mode:
        y = rg.nn.functional.linear(rg.empty(2, 3, device="meta"), rg.empty(4, 3, device="meta"))
    assert y.shape == (2, 4)
    assert mode.seen[-1] is aten.mm.default


def test_a_function_mode_sees_the_call_and_the_other_its_operations() -> None:
    calls: list[str] = []

    class Calls(rg.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            calls.append(func.__name__)
            return func(*args, **(kwargs or {}))

    x, w = rg.ones(2, 3), rg.ones(4, 3)
    with Seeing() as mode, Calls():
        rg.nn.functional.linear(x, w, rg.ones(4))
    assert "linear" in calls
    assert mode.seen[-2:] == [aten.t.default, aten.addmm.default]


def test_plain_functions_are_as_before_once_no_mode_is_there() -> None:
    with Seeing() as mode:
        pass
    x = leaf(1.0, 2.0)
    (x[0] * x.view(2)[1]).backward()
    assert x.grad.tolist() == [2.0, 1.0]
    assert mode.seen == []


def test_batches_and_duals_run_under_a_mode() -> None:
    x = rg.tensor([[1.0, 2.0], [3.0, 4.0]])
    with Seeing():
        assert rg.func.vmap(lambda row: (row * row).sum())(x).tolist() == [5.0, 25.0]
        value, tangent = rg.func.jvp(lambda x: x.exp(), (x,), (rg.ones(2, 2),))
        assert value.tolist() == tangent.tolist()
        assert rg.func.grad(lambda x: (x**2).sum())(x).tolist() == [[2.0, 4.0], [6.0, 8.0]]


def test_gradients_of_samples_are_right_under_a_mode() -> None:
    x, w = rg.tensor([[1.0, 2.0], [3.0, 4.0]]), rg.tensor([0.5, -1.0])
    expected = rg.func.vmap(rg.func.grad(lambda w, x: (w * x).sum() ** 2), in_dims=(None, 0))(w, x)
    with Seeing():
        found = rg.func.vmap(rg.func.grad(lambda w, x: (w * x).sum() ** 2), in_dims=(None, 0))(w, x)
    assert found.tolist() == expected.tolist()


def test_an_overwritten_value_is_told_by_the_line_of_the_program() -> None:
    class Handing(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return self.on(func, args, kwargs or {})

        def on(self, func: Any, args: Any, kwargs: Any) -> Any:
            return func(*args, **kwargs)

    with Handing():
        x = retrograd.ones(3, requires_grad=True)
        y = x.exp()
        y.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation") as raised:
            y.sum().backward()
    assert "y.add_(1)" in str(raised.value)
    assert "func(*args" not in str(raised.value)


def test_operations_that_torch_does_not_have_can_be_asked_what_they_are() -> None:
    told: list[Any] = []

    class Asking(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func.namespace == "retrograd":
                told.append(
                    (func.name(), func.tags, func.is_view, func._schema.is_mutable, func.overloadpacket.overloads())
                )
            return func(*args, **(kwargs or {}))

    x = rg.ones(4, requires_grad=True)
    with Asking():
        rg.quantile(x, 0.5).backward()
    tags = [rg.Tag.pt2_compliant_tag]
    names = ["retrograd::quantile", "retrograd::quantile_vjp"]
    assert told == [(name, tags, False, False, ["default"]) for name in names]
