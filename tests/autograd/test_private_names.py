"""Private names of torch.autograd that programs use all the same."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import retrograd
from tests.oracle import described, outcome, whole


def forward_mode_switched_off(t: Any) -> Any:
    fw = importlib.import_module(f"{t.__name__}.autograd.forward_ad")
    with fw.dual_level():
        dual = fw.make_dual(t.ones(2), t.ones(2))
        with fw._set_fwd_grad_enabled(False):
            seen = [fw.unpack_dual(dual * 2), fw.unpack_dual(dual), fw._is_fwd_grad_enabled()]
            made = fw.make_dual(t.ones(2), t.ones(2))
            inside = dual * 3
        return seen, [fw.unpack_dual(one) for one in (inside, dual * 2, made)], fw._is_fwd_grad_enabled()


def uses_counted(t: Any) -> Any:
    """Count after each step: views, nodes that have saved a tensor, whose gradient it is."""
    base = t.ones(2)
    counts = [base._use_count()]
    view = base.view(2)
    again = view.view(2)
    counts += [base._use_count(), view._use_count(), again._use_count()]
    cut = base.detach()
    counts += [base._use_count(), cut._use_count()]
    leaf = t.ones(2, requires_grad=True)
    twice = leaf * 2
    counts += [leaf._use_count(), twice._use_count()]
    square = leaf * leaf
    power = square.exp()
    counts += [leaf._use_count(), square._use_count(), power._use_count()]
    power.sum().backward()
    counts += [leaf._use_count(), power._use_count()]
    del twice, square, power
    return [*counts, leaf._use_count()]


def gradients_by_the_private_name(t: Any) -> Any:
    x = t.ones(2, requires_grad=True)
    seen = [x._grad]
    x.grad = t.ones(2)
    seen.append(x._grad is x.grad)
    x._grad = t.zeros(2)
    seen.append(x.grad)
    x._grad = None
    return [*seen, x.grad]


def duals_as_views(t: Any) -> Any:
    fw = importlib.import_module(f"{t.__name__}.autograd.forward_ad")
    seen = []
    with fw.dual_level():
        primal, tangent, whole = t.ones(2), t.ones(2), t.ones(4)
        dual = fw.make_dual(primal, tangent)
        unpacked = fw.unpack_dual(dual)
        seen += [dual._base is primal, dual._is_view(), unpacked.primal._base is primal, unpacked.tangent._is_view()]
        of_view = fw.make_dual(whole[:2], tangent)
        seen += [of_view._base is whole, of_view._is_view(), dual.view(2)._base is primal, (dual * 2)._is_view()]
        leaf = t.ones(2, requires_grad=True)
        seen += [fw.make_dual(leaf, tangent)._base is leaf, leaf._base]
    return seen


def versions_preserved(t: Any) -> Any:
    x = t.ones(2, requires_grad=True)
    y = (x * 4).sqrt()
    with t.autograd._unsafe_preserve_version_counter(y):
        y.detach().mul_(2)
    y.sum().backward()
    return y._version, x.grad


def versions_of_several(t: Any) -> Any:
    a, b = t.ones(2), t.ones(2)
    a.add_(1)
    with t.autograd._unsafe_preserve_version_counter((a, b)):
        a.add_(1)
        b.add_(1)
    return a._version, b._version


def versions_set(t: Any) -> Any:
    a = t.ones(2)
    a.add_(1)
    importlib.import_module(f"{t.__name__}._C")._autograd._unsafe_set_version_counter((a,), (7,))
    return a._version


def versions_of_a_list(t: Any) -> Any:
    keep = t.autograd._unsafe_preserve_version_counter
    return outcome(lambda: keep([t.ones(2)]) and None, words=whole, kinds=AssertionError, ignore_warnings=False)


def nodes_that_run(t: Any) -> Any:
    a, b = t.ones(2, requires_grad=True), t.ones(2, requires_grad=True)
    y, z = a * 2, b * 3
    w = y + z
    nodes = [y.grad_fn, z.grad_fn, w.grad_fn, *(one.grad_fn.next_functions[0][0] for one in (y, z))]
    seen: list[Any] = []

    def ask(node: Any) -> Any:
        engine = importlib.import_module(f"{t.__name__}._C")
        return outcome(engine._will_engine_execute_node, node, words=whole, kinds=RuntimeError, ignore_warnings=False)

    w.register_hook(lambda g: seen.append([ask(node) for node in nodes]))
    w.sum().backward(retain_graph=True)
    t.autograd.grad(w.sum(), a, retain_graph=True)
    t.autograd.grad(w.sum(), y, retain_graph=True)
    w.sum().backward(inputs=[a])
    return seen, ask(nodes[0]), ask(3)


def view_replay(t: Any) -> Any:
    switch = importlib.import_module(f"{t.__name__}.autograd.grad_mode")._force_original_view_tracking
    read = importlib.import_module(f"{t.__name__}._C")._is_view_replay_enabled
    with switch(True):
        inside = read()
    return inside, read()


@pytest.mark.oracle
@pytest.mark.parametrize(
    "program",
    [
        duals_as_views,
        forward_mode_switched_off,
        gradients_by_the_private_name,
        uses_counted,
        versions_preserved,
        versions_of_several,
        versions_set,
        versions_of_a_list,
        nodes_that_run,
        view_replay,
    ],
)
def test_like_torch(program: Any) -> None:
    assert described(program(retrograd)) == described(program(pytest.importorskip("torch")))


def test_where_names_are() -> None:
    function = importlib.import_module("retrograd.autograd.function")
    assert function.NestedIOFunction is retrograd.autograd.NestedIOFunction
    assert retrograd.autograd.kineto_available() is False
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = function.nothing
