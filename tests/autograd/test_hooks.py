"""Hooks on tensors, nodes, leaves and saved values: order, results, removal, as in torch."""

from __future__ import annotations

from typing import Any

from tests.autograd.recording import Programs

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


test_as_torch, test_recording_is_torchs = program.tests()
