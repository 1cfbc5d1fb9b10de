"""Memory goes when the last reference goes: no cycle may need the garbage collector."""

from __future__ import annotations

import gc
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import retrograd as torch
from retrograd._graph.node import Node, Slot
from retrograd.autograd import forward_ad
from retrograd.tensor._base import Extra, Storage

KINDS = (torch.Tensor, Node, Slot, Storage, Extra)


@pytest.fixture(autouse=True, scope="module")
def _settled() -> Iterator[None]:
    """Take what was made before out of the collector's sight, which makes looking at the rest quick."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def _no_collector(_settled: None) -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def alive() -> list[Any]:
    """Return every tensor, node, storage that lives now."""
    return [one for one in gc.get_objects() if isinstance(one, KINDS)]


def frees(run: Callable[[], Any]) -> None:
    """Run something once to fill caches, and again: nothing may be left."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run()
        gc.collect()
        before = {id(one) for one in alive()}
        run()
        left = [one for one in alive() if id(one) not in before]
    assert not left, f"{len(left)} objects are left: {[type(one).__name__ for one in left]}"


def leaf(n: int = 3) -> Any:
    return torch.ones(n, dtype=torch.float64, requires_grad=True)


def watched_array() -> tuple[Any, Any]:
    """Return a tensor on an array whose end can be seen."""

    array = np.ones(3)
    return torch.from_numpy(array), weakref.ref(array)


# ---- graphs ----
def test_the_check_sees_a_cycle():
    """A graph in a cycle is reported, so that the other tests mean something."""

    def run() -> None:
        y = leaf() * 2
        y.myself = y

    with pytest.raises(AssertionError, match="objects are left"):
        frees(run)
    gc.collect()


def test_graph_without_backward():
    frees(lambda: (leaf() * 2).exp().sin().sum())


def test_graph_after_backward():
    frees(lambda: (leaf() * 2).exp().sin().sum().backward())


def test_graph_after_backward_that_retains():
    frees(lambda: (leaf() * 2).exp().sum().backward(retain_graph=True))


def test_leaf_dies_with_its_graph():
    x = leaf()
    seen = weakref.ref(x)
    y = x.exp()
    del x
    assert seen() is not None
    del y
    assert seen() is None


def test_intermediate_tensor_dies_before_its_graph():
    x = leaf()
    y = x * 2
    seen = weakref.ref(y)
    z = y.exp()
    del y
    assert seen() is None
    z.sum().backward()
    assert x.grad is not None


def test_saved_input_dies_with_backward():
    x = leaf()
    y = x * 2
    array = y._array
    count = weakref.ref(array)
    z = y * y
    del y, array
    assert count() is not None
    z.sum().backward()
    assert count() is None


def test_saved_output_dies_with_backward():
    x = leaf()
    y = x.exp()
    seen = weakref.ref(y._array)
    z = y.sum()
    del y
    assert seen() is not None
    z.backward()
    assert seen() is None


def test_saved_output_makes_no_cycle():
    x = leaf()
    y = x.exp()
    node = weakref.ref(y.grad_fn)
    del y
    assert node() is None


def test_reading_saved_output_makes_no_cycle():
    def run() -> None:
        y = leaf().exp()
        _ = y.grad_fn._saved_result

    frees(run)


def test_reading_next_functions():
    def run() -> None:
        y = (leaf() * 2).exp()
        _ = y.grad_fn.next_functions[0][0].next_functions[0][0].variable

    frees(run)


def test_accumulator_dies_when_not_held():
    x = leaf()
    node = weakref.ref((x * 2).grad_fn.next_functions[0][0])
    assert node() is None


def test_several_outputs():
    def run() -> None:
        a, b, _ = leaf().unbind(0)
        (a * b).backward()

    frees(run)


def test_indexing_and_joining():
    def run() -> None:
        x = leaf()
        torch.cat([x[[0, 1]], x[1:], torch.stack([x, x])[0]]).sort()[0].sum().backward()

    frees(run)


def test_metadata_of_node():
    def run() -> None:
        y = leaf() * 2
        y.grad_fn.metadata["key"] = [1, 2]

    frees(run)


# ---- in place and views ----
def test_in_place_rebased_graph():
    def run() -> None:
        x = leaf()
        y = x.exp()
        w = y * y
        y.add_(w)
        y.sum()

    frees(run)


def test_in_place_with_itself_and_backward():
    def run() -> None:
        y = leaf() * 2
        y.mul_(y.exp())
        y.add_(y)
        y.sum().backward()

    frees(run)


def test_in_place_saved_output():
    def run() -> None:
        y = leaf() * 2
        y.exp_()
        y = y * 2
        y.sigmoid_()
        y.sum().backward()

    frees(run)


def test_views():
    def run() -> None:
        y = leaf() * 2
        views = [y[1:], y.view(3, 1), y[1:][1:], y.unsqueeze(0)]
        sum(v.sum() for v in views).backward()

    frees(run)


def test_view_does_not_outlive_its_user():
    y = leaf() * 2
    v = y[1:]
    seen = weakref.ref(v)
    del v
    assert seen() is None


def test_base_lives_as_long_as_its_view():
    y = leaf() * 2
    seen = weakref.ref(y)
    v = y[1:]
    del y
    assert seen() is not None
    assert v._base is seen()
    del v
    assert seen() is None


def test_copy_slices():
    def run() -> None:
        y = leaf() * 2
        v = y[1:]
        v.mul_(3)
        y[0] = 5.0
        v.add_(y[:2].clone())
        (y * v.sum()).sum().backward()

    frees(run)


def test_many_views_of_a_long_living_base():
    x = torch.ones(3, dtype=torch.float64)
    for _ in range(1000):
        x[1:]
    assert len(x._storage.views) < 100


def test_write_into_memory_of_numpy():
    x, seen = watched_array()
    y = leaf() * x
    x.add_(1)
    assert seen() is not None
    del x, y
    assert seen() is None


def test_detach_and_data():
    def run() -> None:
        y = leaf() * 2
        d = y.detach()
        d.add_(1)
        y.data.add_(1)

    frees(run)


# ---- hooks ----
def test_tensor_hook():
    def run() -> None:
        x = leaf()
        y = x * 2
        handle = y.register_hook(lambda g: g * 2)
        x.register_hook(lambda g: g * 2)
        y.sum().backward()
        handle.remove()

    frees(run)


def test_hook_that_holds_another_tensor():
    def run() -> None:
        x, w = leaf(), leaf()
        y = x * 2
        y.register_hook(lambda g: g * w)
        y.sum().backward()

    frees(run)


def test_handle_does_not_hold_the_graph():
    y = leaf() * 2
    node = weakref.ref(y.grad_fn)
    handle = y.register_hook(lambda g: None)
    del y
    assert node() is None
    handle.remove()


def test_node_hooks():
    def run() -> None:
        y = leaf() * 2
        y.grad_fn.register_hook(lambda gi, go: None)
        y.grad_fn.register_prehook(lambda go: None)
        y.grad_fn.next_functions[0][0].register_hook(lambda gi, go: None)
        y.sum().backward()

    frees(run)


def test_post_accumulate_hook():
    def run() -> None:
        x = leaf()
        x.register_post_accumulate_grad_hook(lambda p: [p.grad.zero_()].clear())
        (x * 2).sum().backward()

    frees(run)


@pytest.mark.parametrize("mode", ["all", "any"])
def test_multi_grad_hook(mode):
    def run() -> None:
        x = leaf()
        a, b = x * 2, x * 3
        handle = torch.autograd.graph.register_multi_grad_hook((a, b), lambda g: None, mode=mode)
        (a * b).sum().backward()
        handle.remove()

    frees(run)


@pytest.mark.parametrize("mode", ["all", "any"])
def test_multi_grad_hook_not_removed(mode):
    def run() -> None:
        x = leaf()
        a, b = x * 2, x * 3
        torch.autograd.graph.register_multi_grad_hook((a, b), lambda g: None, mode=mode)
        (a * b).sum().backward()

    frees(run)


def test_retain_grad():
    def run() -> None:
        y = leaf() * 2
        y.retain_grad()
        y.mul_(2)
        y.sum().backward()

    frees(run)


def test_retained_tensor_is_not_held_by_its_node():
    y = leaf() * 2
    y.retain_grad()
    node, seen = y.grad_fn, weakref.ref(y)
    del y
    assert seen() is None
    assert node is not None


def test_saved_tensors_hooks():
    def run() -> None:
        x = leaf()
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            y = (x * 2).exp()
            z = y * y
        z.sum().backward()

    frees(run)


def test_saved_tensors_hooks_without_backward():
    def run() -> None:
        x = leaf()
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            y = (x * 2).exp()
            y * y

    frees(run)


def test_gradient_edge():
    def run() -> None:
        x = leaf()
        y = x * 2
        edge = torch.autograd.graph.get_gradient_edge(y)
        torch.autograd.grad((y * y).sum(), edge)

    frees(run)


# ---- higher order ----
def test_double_backward_by_grad():
    def run() -> None:
        x = leaf()
        (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        torch.autograd.grad(g.sum(), x)

    frees(run)


def test_double_backward_not_finished():
    def run() -> None:
        x = leaf()
        torch.autograd.grad((x.exp() * x).sum(), x, create_graph=True)

    frees(run)


def test_grad_with_graph_is_a_cycle_until_cleared():
    """As torch's warning says: `.grad` with a graph holds its own leaf."""

    def run() -> None:
        x = leaf()
        (x**3).sum().backward(create_graph=True)
        x.grad = None

    frees(run)


def test_batched_gradients():
    def run() -> None:
        x = leaf()
        torch.autograd.grad(x * x, x, torch.eye(3, dtype=torch.float64), is_grads_batched=True)

    frees(run)


# ---- transforms ----
def f(x: Any) -> Any:
    return (x * x.exp()).sum()


@pytest.mark.parametrize(
    "transform",
    [
        torch.func.grad(f),
        torch.func.grad_and_value(f),
        torch.func.jacrev(lambda x: x.exp()),
        torch.func.jacfwd(lambda x: x.exp()),
        torch.func.hessian(f),
        torch.func.vmap(lambda x: x.exp()),
        torch.func.grad(lambda x: torch.func.grad(f)(x).sum()),
        lambda x: torch.func.vmap(torch.func.grad(f))(x.reshape(3, 1)),
        lambda x: torch.func.jvp(f, (x,), (x,)),
        lambda x: torch.func.vjp(f, x)[1](torch.ones((), dtype=torch.float64)),
    ],
    ids=[
        "grad",
        "grad_and_value",
        "jacrev",
        "jacfwd",
        "hessian",
        "vmap",
        "grad_of_grad",
        "vmap_of_grad",
        "jvp",
        "vjp",
    ],
)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_transform(transform, requires_grad):
    frees(lambda: transform(torch.ones(3, dtype=torch.float64, requires_grad=requires_grad)))


def test_transform_that_fails():
    def fail(x: Any) -> Any:
        y = x.exp()
        raise ValueError(str(y.shape))

    def run() -> None:
        for transform in (torch.func.grad, torch.func.vmap, torch.func.jacrev):
            with pytest.raises(ValueError, match=r"torch\.Size"):
                transform(fail)(torch.ones(3, dtype=torch.float64))

    frees(run)


def test_dual_level():
    def run() -> None:
        with forward_ad.dual_level():
            x = forward_ad.make_dual(leaf(), leaf())
            y = (x * x).exp()
            y[0] = 1.0
            forward_ad.unpack_dual(y)

    frees(run)


def test_tangent_dies_with_its_tensor_inside_the_level():
    with forward_ad.dual_level():
        t = torch.ones(3, dtype=torch.float64)
        seen = weakref.ref(t._array)
        x = forward_ad.make_dual(torch.ones(3, dtype=torch.float64), t)
        del t
        assert seen() is not None
        del x
        assert seen() is None


# ---- errors ----
def test_error_in_backward():
    def fail(g: Any) -> None:
        raise ValueError("from the hook")

    def run() -> None:
        x = leaf()
        y = (x * 2).exp()
        y.register_hook(fail)
        z = (y * y).sum()
        with pytest.raises(ValueError, match="hook"):
            z.backward()

    frees(run)


def test_error_of_overwritten_value():
    def run() -> None:
        y = leaf() * 2
        z = y * y
        y.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace"):
            z.sum().backward()

    frees(run)


def test_anomaly_mode():
    def run() -> None:
        with torch.autograd.set_detect_anomaly(True):
            (leaf() * 2).exp().sum().backward()

    frees(run)


def test_training_loop_does_not_grow():
    w = leaf(10)

    def run() -> None:
        for _ in range(5):
            loss = (w * w).exp().mean()
            loss.backward()
            with torch.no_grad():
                w.sub_(w.grad, alpha=0.1)
            w.grad = None

    frees(run)
