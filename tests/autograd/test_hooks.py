"""Hooks on tensors, nodes, leaves and saved values: order, results, removal, as in torch."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd
from tests.autograd.recording import Programs, caught

program = Programs("hooks")


def leaf(torch: Any, *values: float) -> Any:
    return torch.tensor(values or (1.0, 2.0, 3.0), dtype=torch.float64, requires_grad=True)


# ---- tensor hooks ----
@program
def order_of_tensor_hooks(torch):
    log, x = [], leaf(torch)
    y = x * 2
    for name in "abc":
        y.register_hook(lambda g, name=name: log.append([name, g.tolist()]))
    (y * y).sum().backward()
    return log


@program
def results_are_chained(torch):
    x = leaf(torch)
    y = x * 2
    y.register_hook(lambda g: g + 1)
    y.register_hook(lambda g: g * 10)
    y.sum().backward()
    return x.grad


@program
def leaf_hook_sees_the_sum(torch):
    log, x = [], leaf(torch)
    x.register_hook(lambda g: log.append(g.tolist()))
    (x * x + 3 * x).sum().backward()
    return log, x.grad


@program
def leaf_hook_replaces_the_gradient(torch):
    x = leaf(torch)
    x.register_hook(lambda g: g * 0 + 7)
    (x * x).sum().backward()
    return x.grad


@program
def hook_runs_before_retained_grad(torch):
    x = leaf(torch)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 5)
    y.sum().backward()
    return y.grad, x.grad


@program
def hook_added_before_retain_grad(torch):
    x = leaf(torch)
    y = x * 2
    y.register_hook(lambda g: g * 5)
    y.retain_grad()
    y.register_hook(lambda g: g * 3)
    y.sum().backward()
    return y.grad, x.grad


@program
def removed_hook_is_silent(torch):
    log, x = [], leaf(torch)
    handle = x.register_hook(lambda g: log.append("no"))
    x.register_hook(lambda g: log.append("yes"))
    handle.remove()
    handle.remove()
    x.sum().backward()
    return log


@program
def handle_is_a_context_manager(torch):
    log, x = [], leaf(torch)
    with x.register_hook(lambda g: log.append("inside")):
        x.sum().backward()
    x.sum().backward()
    return log


@program
def hook_removes_itself(torch):
    log, x = [], leaf(torch)

    def once(g):
        log.append("once")
        handle.remove()

    handle = x.register_hook(once)
    x.register_hook(lambda g: log.append("always"))
    x.sum().backward()
    x.sum().backward()
    return log


@program
def hook_with_create_graph_is_recorded(torch):
    x = leaf(torch)
    y = x * x
    y.register_hook(lambda g: g * g)
    (g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    return g, torch.autograd.grad(g.sum(), x)


@program
def hook_sees_requires_grad_only_with_create_graph(torch):
    log, x = [], leaf(torch)
    y = x * x
    y.register_hook(lambda g: log.append([g.requires_grad, torch.is_grad_enabled()]))
    z = (y * y).sum()
    torch.autograd.grad(z, x, retain_graph=True)
    torch.autograd.grad(z, x, create_graph=True)
    return log


@program
def hook_before_in_place_belongs_to_the_old_value(torch):
    log, x = [], leaf(torch)
    y = x * 2
    y.register_hook(lambda g: log.append(["old", g.tolist()]))
    y.mul_(10)
    y.register_hook(lambda g: log.append(["new", g.tolist()]))
    y.sum().backward()
    return log, x.grad


@program
def hooks_run_when_grad_captures_the_tensor(torch):
    x = leaf(torch)
    y = x * 2
    y.register_hook(lambda g: g * 3)
    return torch.autograd.grad(y.sum(), y), x.grad


@program
def hook_on_captured_leaf(torch):
    x = leaf(torch)
    x.register_hook(lambda g: g * 3)
    return torch.autograd.grad((x * 2).sum(), x), x.grad


@program
def hooks_of_nodes_outside_the_path_do_not_run(torch):
    log, x, z = [], leaf(torch), leaf(torch)
    a, b = x * 2, z * 3
    a.register_hook(lambda g: log.append("a"))
    b.register_hook(lambda g: log.append("b"))
    torch.autograd.grad((a * b).sum(), x)
    return log


@program
def hook_on_a_view(torch):
    log, x = [], leaf(torch)
    v = x[1:]
    v.register_hook(lambda g: log.append(g.tolist()))
    (v * v).sum().backward()
    return log, x.grad


@program
def hook_on_one_output_of_many(torch):
    log, x = [], leaf(torch)
    a, b, c = x.unbind(0)
    b.register_hook(lambda g: log.append(g.tolist()))
    b.register_hook(lambda g: g * 10)
    (a * b * c).backward()
    return log, x.grad


@program
def hook_on_output_without_gradient(torch):
    log, x = [], leaf(torch)
    a, b, _ = x.unbind(0)
    b.register_hook(lambda g: log.append("b"))
    (a * 2).backward()
    return log, x.grad


@program
def hook_keeps_the_gradient_it_saw(torch):
    seen, x = [], leaf(torch)
    y = x * 2
    y.register_hook(seen.append)
    (y + y * y).sum().backward()
    (x * 5).sum().backward()
    return seen


@program
def hook_may_write_its_gradient(torch):
    x = leaf(torch)
    y = x * 2
    y.register_hook(lambda g: g.mul_(2))
    (y * y).sum().backward()
    return x.grad


@program
def hook_counts(torch):
    x = leaf(torch)
    y = x * 2
    h = y.register_hook(lambda g: None)
    before = y._backward_hooks is None or len(y._backward_hooks)
    h.remove()
    return bool(before)


# ---- post-accumulate hooks ----
@program
def post_accumulate_hook_sees_the_new_grad(torch):
    log, x = [], leaf(torch)
    x.register_post_accumulate_grad_hook(lambda p: log.append([p is x, p.grad.tolist()]))
    (x * x).sum().backward()
    (x * x).sum().backward()
    return log


@program
def post_accumulate_hook_may_clear(torch):
    x = leaf(torch)

    def step(p):
        with torch.no_grad():
            p.sub_(p.grad, alpha=0.1)
        p.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * x).sum().backward()
    return x, x.grad


@program
def post_accumulate_hooks_in_order_and_removed(torch):
    log, x = [], leaf(torch)
    x.register_post_accumulate_grad_hook(lambda p: log.append(1))
    handle = x.register_post_accumulate_grad_hook(lambda p: log.append(2))
    x.sum().backward()
    handle.remove()
    x.sum().backward()
    return log


@program
def post_accumulate_hook_not_run_by_grad(torch):
    log, x = [], leaf(torch)
    x.register_post_accumulate_grad_hook(lambda p: log.append(1))
    torch.autograd.grad((x * 2).sum(), x)
    return log


@program
def post_accumulate_hook_before_older_nodes(torch):
    log, x = [], leaf(torch)
    w = leaf(torch)
    h = x * 2
    h.register_hook(lambda g: log.append("h"))
    x.register_post_accumulate_grad_hook(lambda p: log.append("x"))
    w.register_post_accumulate_grad_hook(lambda p: log.append("w"))
    (h * w).sum().backward()
    return log


# ---- node hooks ----
@program
def node_hook_arguments(torch):
    log, x = [], leaf(torch)
    y = x * 2
    y.grad_fn.register_hook(lambda gi, go: log.append([[None if g is None else g.tolist() for g in gi], go]))
    y.sum().backward()
    return log


@program
def node_hook_replaces_grad_inputs(torch):
    x, w = leaf(torch), leaf(torch)
    y = x * w
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * 10, None))
    y.sum().backward()
    return x.grad, w.grad


@program
def node_prehook_replaces_grad_outputs(torch):
    x = leaf(torch)
    y = x * 2
    y.grad_fn.register_prehook(lambda go: (go[0] * 10,))
    y.sum().backward()
    return x.grad


@program
def order_of_all_hooks(torch):
    log, x = [], leaf(torch)
    y = x * 2
    y.grad_fn.register_hook(lambda gi, go: log.append("post"))
    y.grad_fn.register_prehook(lambda go: log.append("pre"))
    y.register_hook(lambda g: log.append("tensor"))
    x.register_hook(lambda g: log.append("leaf"))
    x.register_post_accumulate_grad_hook(lambda p: log.append("accumulated"))
    y.sum().backward()
    return log


@program
def prehook_before_tensor_hook_registered_later(torch):
    log, x = [], leaf(torch)
    y = x * 2
    y.register_hook(lambda g: log.append("tensor 1"))
    y.grad_fn.register_prehook(lambda go: log.append("pre 1"))
    y.register_hook(lambda g: log.append("tensor 2"))
    y.grad_fn.register_prehook(lambda go: log.append("pre 2"))
    y.sum().backward()
    return log


@program
def node_hook_removed(torch):
    log, x = [], leaf(torch)
    y = x * 2
    a = y.grad_fn.register_hook(lambda gi, go: log.append("a"))
    b = y.grad_fn.register_prehook(lambda go: log.append("b"))
    a.remove()
    b.remove()
    y.sum().backward()
    return log


@program
def accumulator_hooks(torch):
    log, x = [], leaf(torch)
    y = x * 2
    node = y.grad_fn.next_functions[0][0]
    node.register_prehook(lambda go: log.append(["pre", go[0].tolist(), x.grad is None]))
    node.register_hook(lambda gi, go: log.append(["post", list(gi), x.grad.tolist()]))
    y.sum().backward()
    return log


@program
def accumulator_prehook_replaces(torch):
    x = leaf(torch)
    y = x * 2
    node = y.grad_fn.next_functions[0][0]
    node.register_prehook(lambda go: (go[0] * 3,))
    y.sum().backward()
    return x.grad


@program
def node_hook_with_create_graph(torch):
    x = leaf(torch)
    y = x * x
    y.grad_fn.register_hook(lambda gi, go: tuple(g * x for g in gi))
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    return g, torch.autograd.grad(g.sum(), x)


@program
def node_hook_of_unbind(torch):
    log, x = [], leaf(torch)
    a, b, _ = x.unbind(0)
    a.grad_fn.register_prehook(lambda go: log.append([None if g is None else g.tolist() for g in go]))
    (a * b).backward()
    return log


# ---- multi-grad hooks ----
def _three(torch):
    x = leaf(torch)
    return x, x * 2, x * 3


@program
def multi_all_is_called_once_with_all(torch):
    log, (x, a, b) = [], _three(torch)
    torch.autograd.graph.register_multi_grad_hook((a, b), lambda gs: log.append([g.tolist() for g in gs]))
    (a * b).sum().backward()
    return log, x.grad


@program
def multi_all_with_unused(torch):
    log, (x, a, b) = [], _three(torch)
    seen = lambda gs: log.append([None if g is None else g.tolist() for g in gs])  # noqa: E731
    torch.autograd.graph.register_multi_grad_hook((a, b), seen)
    (a * a).sum().backward()
    return log, x.grad


@program
def multi_all_in_two_backwards(torch):
    log, (_, a, b) = [], _three(torch)
    torch.autograd.graph.register_multi_grad_hook((a, b), lambda gs: log.append(len(gs)))
    y = (a * b).sum()
    y.backward(retain_graph=True)
    y.backward()
    return log


@program
def multi_any_is_called_with_the_first(torch):
    log, (_, a, b) = [], _three(torch)
    torch.autograd.graph.register_multi_grad_hook((a, b), lambda g: log.append(g.tolist()), mode="any")
    y = (a * b).sum()
    y.backward(retain_graph=True)
    y.backward()
    return log


@program
def multi_removed(torch):
    log, (_, a, b) = [], _three(torch)
    handle = torch.autograd.graph.register_multi_grad_hook((a, b), lambda gs: log.append("no"))
    handle.remove()
    (a * b).sum().backward()
    return log


@program
def multi_on_leaves(torch):
    log, x, w = [], leaf(torch), leaf(torch)
    torch.autograd.graph.register_multi_grad_hook((x, w), lambda gs: log.append([g.tolist() for g in gs]))
    (x * w).sum().backward()
    return log


@program
def multi_with_grad_of_one(torch):
    log, (x, a, b) = [], _three(torch)
    seen = lambda gs: log.append([None if g is None else g.tolist() for g in gs])  # noqa: E731
    torch.autograd.graph.register_multi_grad_hook((a, b, x), seen)
    torch.autograd.grad((a * b).sum(), a)
    return log


# ---- retain_grad ----
@program
def retain_grad_accumulates(torch):
    x = leaf(torch)
    y = x * 2
    y.retain_grad()
    z = (y * y).sum()
    z.backward(retain_graph=True)
    z.backward()
    return y.grad, y.retains_grad, x.retains_grad


@program
def retain_grad_twice_is_once(torch):
    y = leaf(torch) * 2
    y.retain_grad()
    y.retain_grad()
    y.sum().backward()
    return y.grad


@program
def retain_grad_follows_in_place(torch):
    x = leaf(torch)
    y = x * 2
    y.retain_grad()
    y.mul_(10)
    y.sum().backward()
    return y.grad, x.grad


@program
def retain_grad_of_base_follows_write_into_view(torch):
    x = leaf(torch)
    y = x * 2
    y.retain_grad()
    y[:2].mul_(10)
    (y * y).sum().backward()
    return y.grad, x.grad


@program
def retain_grad_of_view_after_write_into_base(torch):
    x = leaf(torch)
    y = x * 2
    v = y[:2]
    v.retain_grad()
    y.mul_(10)
    (v * v).sum().backward()
    return v.grad, x.grad


@program
def retain_grad_of_leaf_is_nothing(torch):
    x = leaf(torch)
    x.retain_grad()
    x.sum().backward()
    return x.grad, x.retains_grad


@program
def retain_grad_of_one_output(torch):
    x = leaf(torch)
    a, b, _ = x.unbind(0)
    a.retain_grad()
    (a * b).backward()
    return a.grad, x.grad


@program
def retain_grad_with_grad_to_other_inputs(torch):
    x = leaf(torch)
    y = x * 2
    y.retain_grad()
    torch.autograd.grad((y * y).sum(), x)
    return y.grad


@program
def retained_grad_with_create_graph(torch):
    x = leaf(torch)
    y = x * x
    y.retain_grad()
    (y * y).sum().backward(create_graph=True)
    return y.grad, y.grad.requires_grad, torch.autograd.grad(y.grad.sum(), x)


# ---- saved-tensor hooks ----
def _logged(torch, log, name=""):
    def pack(t):
        log.append([name + "pack", t.tolist()])
        return t.detach().clone()

    def unpack(t):
        log.append([name + "unpack", t.tolist()])
        return t

    return torch.autograd.graph.saved_tensors_hooks(pack, unpack)


@program
def pack_and_unpack(torch):
    log, x = [], leaf(torch)
    with _logged(torch, log):
        y = (x * x.exp()).sum()
    y.backward()
    return log, x.grad


@program
def unpack_may_change_the_value(torch):
    x = leaf(torch)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), lambda p: torch.tensor(p, dtype=x.dtype) * 10):
        y = (x * x).sum()
    y.backward()
    return x.grad


@program
def innermost_pair_of_hooks_wins(torch):
    log, x = [], leaf(torch)
    with _logged(torch, log, "outer "):
        with _logged(torch, log, "inner "):
            y = x.exp()
        z = y.sin().sum()
    z.backward()
    return log, x.grad


@program
def pack_runs_without_hooks_and_grad(torch):
    log, x = [], leaf(torch)

    def pack(t):
        log.append([torch.is_grad_enabled(), t.requires_grad, t.is_leaf])
        return t * 2

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t / 2):
        y = (x * x).sum()
    y.backward()
    return log, x.grad


@program
def unpack_every_time(torch):
    log, x = [], leaf(torch)
    with _logged(torch, log):
        y = x.exp().sum()
    y.backward(retain_graph=True)
    y.backward()
    return [name for name, _ in log], x.grad


@program
def hooks_see_saved_property(torch):
    log, x = [], leaf(torch)
    with _logged(torch, log):
        y = x.exp()
    return y.grad_fn._saved_result, log


@program
def hooks_and_double_backward(torch):
    x = leaf(torch)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        y = (x * x * x).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    return torch.autograd.grad(g.sum(), x)


@program
def hooks_of_custom_function(torch):
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            return g * 3 * ctx.saved_tensors[0] ** 2

    log, x = [], leaf(torch)
    with _logged(torch, log):
        y = Cube.apply(x).sum()
    y.backward()
    return log, x.grad


@program
def save_on_cpu_gives_the_same(torch):
    x = leaf(torch)
    with torch.autograd.graph.save_on_cpu():
        y = (x * x.exp()).sum()
    y.backward()
    return x.grad


@program
def raw_saved_register_hooks(torch):
    x = leaf(torch)
    y = x.exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t * 2, lambda t: t * 5)
    y.sum().backward()
    return x.grad


@program
def disabled_hooks_restore(torch):
    graph = torch.autograd.graph
    with graph.disable_saved_tensors_hooks("no"):
        error = caught(graph.saved_tensors_hooks(lambda t: t, lambda t: t).__enter__)
    with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        pass
    return error


@pytest.mark.parametrize("name", program.names)
def test_as_torch(name):
    program.check(retrograd, name)


@pytest.mark.oracle
@pytest.mark.parametrize("name", program.names)
def test_recording_is_torchs(name):
    program.check(pytest.importorskip("torch"), name)
